-- +goose Up
-- Holds on volumes, dependencies, fair turns between collections, tokens bound to collections, bulk acts. It only adds,
-- so that the version before goes on working on it (R27).

-- Storage volume that the item's object goes to; '' for items without one.
ALTER TABLE work_item ADD COLUMN volume TEXT NOT NULL DEFAULT '';
UPDATE work_item SET volume = 'storage' WHERE action IN ('batch', 'ingest') AND status IN ('pending', 'running', 'failed', 'cancelled');
-- Items that were prepared together.
ALTER TABLE work_item ADD COLUMN graph_id TEXT NOT NULL DEFAULT '';
CREATE INDEX work_item_graph ON work_item (graph_id) WHERE graph_id <> '';
-- What of an item's readiness was found when it was last looked at. Kept by whoever changes one of the facts:
--   0  it is not pending, or its time has not come. What became due by time is promoted by claim and due.
--   1  it is pending, due and not blocked: only a hold or a lock can keep it from starting.
--   2  it is pending and blocked by open prerequisites; unblocked makes it 0 or 1.
--   3  as 1, but set aside, so that claims need not step over it: a hold on it, its batch or its volume, or a lock,
--      covered it. Whoever ends that puts it back. A hold on everything, a stage or a collection sets nothing aside.
-- Items of the version before are looked at as they become due.
ALTER TABLE work_item ADD COLUMN ready BIGINT NOT NULL DEFAULT 0;
UPDATE work_item SET ready = 2 WHERE status = 'pending' AND blocker_count > 0 AND stage <> 'expand';
DROP INDEX work_item_ready;
-- What stands behind the columns that claims look for is for counting what waits without reading its rows.
CREATE INDEX work_item_ready ON work_item (stage, collection, rank, id, run_at, volume) WHERE ready = 1;
CREATE INDEX work_item_express ON work_item (stage, rank, id) WHERE ready = 1 AND rank < 0;
CREATE INDEX work_item_later ON work_item (run_at, stage, collection, volume) WHERE status = 'pending' AND ready = 0;
CREATE INDEX work_item_kept ON work_item (stage, collection, volume) WHERE ready IN (2, 3);
CREATE INDEX work_item_aside_batch ON work_item (parent_id, id) WHERE ready = 3;
CREATE INDEX work_item_aside_volume ON work_item (volume, id) WHERE ready = 3;
-- (stage, status) stands in front, although status is always the same here: SQLite would prefer work_item_place otherwise.
DROP INDEX work_item_offered;
CREATE INDEX work_item_offered ON work_item (stage, status, nudges, nudge_at) WHERE status = 'pending' AND nudges > 0;
CREATE INDEX work_item_room ON work_item (stage, status, rank, id) WHERE status = 'pending' AND wait_reason = 'no-space';
CREATE INDEX lock_wait_turn ON lock_wait (key, submitted_at, item_id);

-- Whose turn it is in a stage: the collection that was served longest ago. active is 1 for
-- every collection that has an item with ready = 1 in the stage; a claim that finds none makes it 0.
CREATE TABLE lane (
  stage      TEXT NOT NULL,
  collection TEXT NOT NULL,
  served     BIGINT NOT NULL, -- number of the claim that served it last, counted per stage
  active     BIGINT NOT NULL,
  PRIMARY KEY (stage, collection)
);
CREATE INDEX lane_turn ON lane (stage, served, collection) WHERE active = 1;
CREATE INDEX lane_served ON lane (stage, served);
-- Holds that are gone, and how far the items that they had set aside are put back.
CREATE TABLE putback (
  scope    TEXT NOT NULL,
  key      TEXT NOT NULL,
  after_id TEXT NOT NULL,
  PRIMARY KEY (scope, key)
);

-- What of a reservation is still to come, max(0, bytes - staged), and the sum of these for each volume (R24).
ALTER TABLE reservation ADD COLUMN remaining BIGINT NOT NULL DEFAULT 0;
UPDATE reservation SET remaining = COALESCE((SELECT CASE WHEN reservation.bytes > i.done_bytes
  THEN reservation.bytes - i.done_bytes ELSE 0 END FROM work_item i WHERE i.id = reservation.item_id), 0);
CREATE TABLE promised (
  volume TEXT PRIMARY KEY,
  bytes  BIGINT NOT NULL
);
INSERT INTO promised (volume, bytes) SELECT volume, SUM(remaining) FROM reservation GROUP BY volume;

-- 1: the edge keeps the item from starting at all; 0: only from a stage that the route calls gated.
ALTER TABLE work_dep ADD COLUMN at_start BIGINT NOT NULL DEFAULT 0;

-- Submissions that depend on each other: work_item.graph_id. Nothing of a graph starts before it is sealed.
CREATE TABLE graph (
  id         TEXT PRIMARY KEY,
  tenant     TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  sealed_at  BIGINT
);
-- What whoever prepared an item calls it. It outlives the item's purge, so that a repeated call is answered alike (R28).
CREATE TABLE graph_node (
  graph_id TEXT NOT NULL,
  key      TEXT NOT NULL,
  item_id  TEXT NOT NULL,
  PRIMARY KEY (graph_id, key)
);

CREATE INDEX attempt_withdrawn ON attempt (worker, finished_at) WHERE outcome = 'withdrawn';

ALTER TABLE event ADD COLUMN collection TEXT NOT NULL DEFAULT '';
-- The act that this event is a part of: one audit entry for all that it changed.
ALTER TABLE event ADD COLUMN audit_id TEXT NOT NULL DEFAULT '';

-- 1: an act of a person or a refusal, not a part of another act: an entry of the audit log.
ALTER TABLE event ADD COLUMN audited BIGINT NOT NULL DEFAULT 0;
CREATE INDEX event_audited ON event (feed_seq) WHERE audited = 1;

ALTER TABLE token ADD COLUMN collections TEXT NOT NULL DEFAULT '[]';
ALTER TABLE token ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN expires_at BIGINT;
ALTER TABLE token ADD COLUMN revoked_at BIGINT;
CREATE INDEX token_name ON token (name);

-- Whether submissions are taken, and whatever else is one value for all.
CREATE TABLE setting (
  name   TEXT PRIMARY KEY,
  value  TEXT NOT NULL,
  reason TEXT NOT NULL,
  actor  TEXT NOT NULL,
  at     BIGINT NOT NULL
);
-- The oldest program, by the newest migration that it knows, which this schema still serves.
INSERT INTO setting (name, value, reason, actor, at) VALUES ('schema-serves', '2', '', 'registry', 0);

-- The order in which items came, which lists go on by, and by which the text index names them.
ALTER TABLE work_item ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
UPDATE work_item SET seq = r.n FROM (SELECT id AS item_id, ROW_NUMBER() OVER (ORDER BY created_at, id) AS n FROM work_item) r
  WHERE work_item.id = r.item_id;
-- The collection spares the row where it does not match what was found by its text.
CREATE UNIQUE INDEX work_item_seq ON work_item (seq, collection);
-- Lists, newest first. Each column that a query narrows stands before created_at in one of them; where several values
-- are asked for, each is read by itself. What stands behind seq spares the row where it does not match. Jobs are nearly all items, so only the others have their action in an index.
DROP INDEX work_item_new;
DROP INDEX work_item_list;
DROP INDEX work_item_collection;
DROP INDEX work_item_status;
DROP INDEX work_item_children;
CREATE INDEX work_item_new ON work_item (tenant, created_at, seq);
CREATE INDEX work_item_list ON work_item (action, status, created_at, seq, tenant, collection) WHERE action <> 'ingest';
CREATE INDEX work_item_collection ON work_item (collection, created_at, seq);
CREATE INDEX work_item_place ON work_item (stage, status, tenant, created_at, seq);
CREATE INDEX work_item_collection_place ON work_item (collection, stage, status, tenant, created_at, seq);
CREATE INDEX work_item_by ON work_item (created_by, created_at, seq);
CREATE INDEX work_item_class ON work_item (error_class, created_at, seq, tenant, collection) WHERE error_class <> '';
-- Few items have a note: what is looked for in it is looked for among them.
CREATE INDEX work_item_noted ON work_item (stage, status, tenant, action, created_at, seq) WHERE note <> '';
CREATE INDEX work_item_requeued ON work_item (tenant, created_at, seq) WHERE retry_count > 0;
CREATE INDEX work_item_children ON work_item (parent_id, status, row_no) WHERE parent_id IS NOT NULL;
-- +dialect sqlite
-- The text of items, by their trigrams. Triggers keep it, so that no way of changing an item can forget it.
CREATE VIRTUAL TABLE item_text USING fts5(name, note, content='work_item', content_rowid='seq', tokenize='trigram', columnsize=0);
INSERT INTO item_text (rowid, name, note) SELECT seq, name, note FROM work_item;
-- +goose StatementBegin
CREATE TRIGGER item_text_new AFTER INSERT ON work_item BEGIN
  INSERT INTO item_text (rowid, name, note) VALUES (NEW.seq, NEW.name, NEW.note);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER item_text_changed AFTER UPDATE OF name, note ON work_item
WHEN OLD.name <> NEW.name OR OLD.note <> NEW.note BEGIN
  INSERT INTO item_text (item_text, rowid, name, note) VALUES ('delete', OLD.seq, OLD.name, OLD.note);
  INSERT INTO item_text (rowid, name, note) VALUES (NEW.seq, NEW.name, NEW.note);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER item_text_gone AFTER DELETE ON work_item BEGIN
  INSERT INTO item_text (item_text, rowid, name, note) VALUES ('delete', OLD.seq, OLD.name, OLD.note);
END;
-- +goose StatementEnd
-- +dialect postgres
-- Which statuses there are depends on the stage, and what an item waits for on its place.
CREATE STATISTICS work_item_places (mcv) ON stage, status FROM work_item;
-- The text of items, by its trigrams. The extension may lie in whatever schema; the lock is for several schemas of one
-- database that are migrated at once.
-- +goose StatementBegin
DO $$
DECLARE home TEXT;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('holdfast pg_trgm'));
  CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
  SELECT n.nspname INTO home FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX work_item_text ON work_item USING gin (name %I.gin_trgm_ops, note %I.gin_trgm_ops)', home, home);
END $$;
-- +goose StatementEnd
-- +dialect all

-- +goose Down
-- +dialect sqlite
DROP TRIGGER item_text_gone;
DROP TRIGGER item_text_changed;
DROP TRIGGER item_text_new;
DROP TABLE item_text;
-- +dialect postgres
DROP INDEX work_item_text;
DROP STATISTICS work_item_places;
-- +dialect all
DROP INDEX work_item_children;
DROP INDEX work_item_requeued;
DROP INDEX work_item_noted;
DROP INDEX work_item_class;
DROP INDEX work_item_by;
DROP INDEX work_item_collection_place;
DROP INDEX work_item_place;
DROP INDEX work_item_collection;
DROP INDEX work_item_list;
DROP INDEX work_item_new;
DROP INDEX work_item_seq;
ALTER TABLE work_item DROP COLUMN seq;
CREATE INDEX work_item_new ON work_item (tenant, created_at, id);
CREATE INDEX work_item_list ON work_item (tenant, action, created_at, id);
CREATE INDEX work_item_collection ON work_item (tenant, collection, created_at, id);
CREATE INDEX work_item_status ON work_item (tenant, status, created_at, id);
CREATE INDEX work_item_children ON work_item (parent_id, status) WHERE parent_id IS NOT NULL;
DROP TABLE setting;
DROP INDEX token_name;
ALTER TABLE token DROP COLUMN revoked_at;
ALTER TABLE token DROP COLUMN expires_at;
ALTER TABLE token DROP COLUMN created_by;
ALTER TABLE token DROP COLUMN collections;
DROP INDEX event_audited;
ALTER TABLE event DROP COLUMN audited;
ALTER TABLE event DROP COLUMN audit_id;
ALTER TABLE event DROP COLUMN collection;
DROP INDEX attempt_withdrawn;
DROP TABLE graph_node;
DROP TABLE graph;
ALTER TABLE work_dep DROP COLUMN at_start;
DROP TABLE promised;
ALTER TABLE reservation DROP COLUMN remaining;
DROP TABLE putback;
DROP TABLE lane;
DROP INDEX lock_wait_turn;
DROP INDEX work_item_room;
DROP INDEX work_item_offered;
CREATE INDEX work_item_offered ON work_item (stage) WHERE status = 'pending' AND nudges > 0;
DROP INDEX work_item_aside_volume;
DROP INDEX work_item_aside_batch;
DROP INDEX work_item_kept;
DROP INDEX work_item_later;
DROP INDEX work_item_express;
DROP INDEX work_item_ready;
ALTER TABLE work_item DROP COLUMN ready;
DROP INDEX work_item_graph;
ALTER TABLE work_item DROP COLUMN graph_id;
ALTER TABLE work_item DROP COLUMN volume;
CREATE INDEX work_item_ready ON work_item (stage, rank, id) WHERE status = 'pending';
