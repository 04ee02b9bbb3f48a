-- +goose Up
-- Each transition writes events, so they have no index that nobody reads: they are found by their number or their item.
-- +dialect sqlite
-- As the key of the table itself, the number costs no index of its own, and stands in each index anyway.
CREATE TABLE numbered_event (
  feed_seq   INTEGER PRIMARY KEY,
  id         TEXT NOT NULL,
  item_id    TEXT NOT NULL,
  attempt    BIGINT NOT NULL,
  type       TEXT NOT NULL,
  actor      TEXT NOT NULL,
  at         BIGINT NOT NULL,
  data       TEXT NOT NULL,
  collection TEXT NOT NULL DEFAULT '',
  audit_id   TEXT NOT NULL DEFAULT '',
  audited    BIGINT NOT NULL DEFAULT 0
);

INSERT INTO numbered_event (feed_seq, id, item_id, attempt, type, actor, at, data, collection, audit_id, audited)
  SELECT feed_seq, id, item_id, attempt, type, actor, at, data, collection, audit_id, audited FROM event ORDER BY feed_seq;

DROP TABLE event;
ALTER TABLE numbered_event RENAME TO event;
CREATE INDEX event_item ON event (item_id);
CREATE INDEX event_audited ON event (audited) WHERE audited = 1;

-- +dialect postgres
ALTER TABLE event DROP CONSTRAINT event_pkey;
ALTER TABLE event ALTER COLUMN feed_seq SET NOT NULL;
ALTER TABLE event REPLICA IDENTITY USING INDEX event_feed_seq_key;

-- +dialect all
-- premis_event_chain has the events of an object in their order.
DROP INDEX premis_event_object;

-- +goose Down
CREATE INDEX premis_event_object ON premis_event (object_id, at);

-- +dialect sqlite
CREATE TABLE named_event (
  id         TEXT PRIMARY KEY,
  feed_seq   BIGINT UNIQUE,
  item_id    TEXT NOT NULL,
  attempt    BIGINT NOT NULL,
  type       TEXT NOT NULL,
  actor      TEXT NOT NULL,
  at         BIGINT NOT NULL,
  data       TEXT NOT NULL,
  collection TEXT NOT NULL DEFAULT '',
  audit_id   TEXT NOT NULL DEFAULT '',
  audited    BIGINT NOT NULL DEFAULT 0
);

INSERT INTO named_event (id, feed_seq, item_id, attempt, type, actor, at, data, collection, audit_id, audited)
  SELECT id, feed_seq, item_id, attempt, type, actor, at, data, collection, audit_id, audited FROM event ORDER BY feed_seq;

DROP TABLE event;
ALTER TABLE named_event RENAME TO event;
CREATE INDEX event_item ON event (item_id, feed_seq);
CREATE INDEX event_audited ON event (feed_seq) WHERE audited = 1;

-- +dialect postgres
ALTER TABLE event REPLICA IDENTITY DEFAULT;
ALTER TABLE event ALTER COLUMN feed_seq DROP NOT NULL;
ALTER TABLE event ADD PRIMARY KEY (id);

-- +dialect all
