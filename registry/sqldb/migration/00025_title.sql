-- +goose Up
-- The title that people see an item by, which the spec of a batch or job gives; '': none of its own. It never changes.
ALTER TABLE work_item ADD COLUMN title TEXT NOT NULL DEFAULT '';

-- +dialect postgres
ALTER TABLE item_text ADD COLUMN title TEXT NOT NULL DEFAULT '';
-- The next migration changes most of its rows, and makes the index anew. Until then text is looked for in the whole table.
DROP INDEX item_text_words;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION item_text_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM item_text WHERE seq = OLD.seq;
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE item_text SET name = NEW.name, title = NEW.title, note = NEW.note, places = item_text_places(NEW.collection, NEW.status, NEW.note)
      WHERE seq = NEW.seq;
  ELSE
    INSERT INTO item_text (seq, name, title, note, places)
      VALUES (NEW.seq, NEW.name, NEW.title, NEW.note, item_text_places(NEW.collection, NEW.status, NEW.note));
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER item_text_titled AFTER UPDATE OF title ON work_item FOR EACH ROW
  WHEN (OLD.title <> NEW.title) EXECUTE FUNCTION item_text_follows();

-- PostgreSQL cannot read JSON with a NUL in it.
-- +goose StatementBegin
CREATE FUNCTION spec_title(spec TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN strpos(spec, '\u0000') > 0 THEN '' ELSE COALESCE(CAST(spec AS JSON) ->> 'title', '') END
$$;
-- +goose StatementEnd

-- Programs of the version before do not write the title.
-- +goose StatementBegin
CREATE FUNCTION work_item_titled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE work_item SET title = spec_title(NEW.spec) WHERE id = NEW.item_id AND title = '' AND action IN ('batch', 'ingest');
  RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER work_item_titled AFTER INSERT ON work_detail FOR EACH ROW
  WHEN (strpos(NEW.spec, '"title":') > 0 AND strpos(NEW.spec, '"title_shared":true') = 0) EXECUTE FUNCTION work_item_titled();

-- +dialect sqlite
-- Programs of the version before do not write the title.
-- +goose StatementBegin
CREATE TRIGGER work_item_titled AFTER INSERT ON work_detail
WHEN instr(NEW.spec, '"title":') > 0 AND instr(NEW.spec, '"title_shared":true') = 0
BEGIN
  UPDATE work_item SET title = COALESCE(json_extract(NEW.spec, '$.title'), '')
    WHERE id = NEW.item_id AND title = '' AND action IN ('batch', 'ingest');
END;
-- +goose StatementEnd

-- +dialect all
-- +goose Down
-- +dialect postgres
DROP TRIGGER work_item_titled ON work_detail;
DROP FUNCTION work_item_titled;
DROP FUNCTION spec_title;
DROP TRIGGER item_text_titled ON work_item;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION item_text_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM item_text WHERE seq = OLD.seq;
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE item_text SET name = NEW.name, note = NEW.note, places = item_text_places(NEW.collection, NEW.status, NEW.note)
      WHERE seq = NEW.seq;
  ELSE
    INSERT INTO item_text (seq, name, note, places)
      VALUES (NEW.seq, NEW.name, NEW.note, item_text_places(NEW.collection, NEW.status, NEW.note));
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd

ALTER TABLE item_text DROP COLUMN title;

-- +goose StatementBegin
DO $$
DECLARE home TEXT;
BEGIN
  SELECT n.nspname INTO home FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX item_text_words ON item_text USING gin (name %I.gin_trgm_ops, note %I.gin_trgm_ops, places)', home, home);
END $$;
-- +goose StatementEnd

-- +dialect sqlite
DROP TRIGGER work_item_titled;

-- +dialect all
ALTER TABLE work_item DROP COLUMN title;
