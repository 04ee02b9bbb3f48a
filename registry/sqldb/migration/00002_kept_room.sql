-- +goose Up
-- What the failed and cancelled items of a collection keep reserved on a volume, so that a reservation needs no sum over others.
-- Triggers keep it, so that it is right while programs of the version before run, too. It is a sum of doubles: bytes may overflow.
CREATE TABLE kept_room (
  volume     TEXT NOT NULL,
  collection TEXT NOT NULL,
  bytes      DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (volume, collection)
);

INSERT INTO kept_room (volume, collection, bytes)
  SELECT r.volume, i.collection, SUM(CAST(r.bytes AS DOUBLE PRECISION)) FROM reservation r JOIN work_item i ON i.id = r.item_id
  WHERE i.status IN ('failed', 'cancelled') GROUP BY r.volume, i.collection;

-- +dialect sqlite
-- +goose StatementBegin
CREATE TRIGGER work_item_keeps_room AFTER UPDATE OF status ON work_item
WHEN (NEW.status IN ('failed', 'cancelled')) <> (OLD.status IN ('failed', 'cancelled'))
BEGIN
  INSERT INTO kept_room (volume, collection, bytes)
    SELECT r.volume, NEW.collection, CASE WHEN NEW.status IN ('failed', 'cancelled') THEN r.bytes ELSE -r.bytes END
    FROM reservation r WHERE r.item_id = NEW.id
    ON CONFLICT (volume, collection) DO UPDATE SET bytes = kept_room.bytes + excluded.bytes;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER reservation_keeps_no_room AFTER DELETE ON reservation BEGIN
  UPDATE kept_room SET bytes = bytes - OLD.bytes WHERE volume = OLD.volume
    AND collection = (SELECT i.collection FROM work_item i WHERE i.id = OLD.item_id AND i.status IN ('failed', 'cancelled'));
END;
-- +goose StatementEnd

-- +dialect postgres
-- +goose StatementBegin
CREATE FUNCTION work_item_keeps_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO kept_room (volume, collection, bytes)
    SELECT r.volume, NEW.collection, CASE WHEN NEW.status IN ('failed', 'cancelled') THEN r.bytes ELSE -r.bytes END
    FROM reservation r WHERE r.item_id = NEW.id
    ON CONFLICT (volume, collection) DO UPDATE SET bytes = kept_room.bytes + excluded.bytes;
  RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER work_item_keeps_room AFTER UPDATE OF status ON work_item FOR EACH ROW
  WHEN ((NEW.status IN ('failed', 'cancelled')) <> (OLD.status IN ('failed', 'cancelled'))) EXECUTE FUNCTION work_item_keeps_room();

-- +goose StatementBegin
CREATE FUNCTION reservation_keeps_no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE kept_room SET bytes = bytes - OLD.bytes WHERE volume = OLD.volume
    AND collection = (SELECT i.collection FROM work_item i WHERE i.id = OLD.item_id AND i.status IN ('failed', 'cancelled'));
  RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER reservation_keeps_no_room AFTER DELETE ON reservation FOR EACH ROW EXECUTE FUNCTION reservation_keeps_no_room();

-- +dialect all
-- +goose Down
-- +dialect sqlite
DROP TRIGGER work_item_keeps_room;
DROP TRIGGER reservation_keeps_no_room;

-- +dialect postgres
DROP TRIGGER work_item_keeps_room ON work_item;
DROP TRIGGER reservation_keeps_no_room ON reservation;
DROP FUNCTION work_item_keeps_room;
DROP FUNCTION reservation_keeps_no_room;

-- +dialect all
DROP TABLE kept_room;
