-- +goose Up
-- Holds on volumes, dependencies, fair turns between collections, tokens bound to collections, bulk acts. It only adds,
-- so that the version before goes on working on it (R27).

-- Storage volume that the item's object goes to; '' for items without one.
ALTER TABLE work_item ADD COLUMN volume TEXT NOT NULL DEFAULT '';
-- Items that were prepared together.
ALTER TABLE work_item ADD COLUMN graph_id TEXT NOT NULL DEFAULT '';
CREATE INDEX work_item_graph ON work_item (graph_id) WHERE graph_id <> '';
-- 1: nothing but a hold or a lock keeps the item from starting: it is pending, due and not blocked. Kept by whoever
-- changes one of these; what became due by time is promoted by claim and due.
ALTER TABLE work_item ADD COLUMN ready BIGINT NOT NULL DEFAULT 0;
UPDATE work_item SET ready = 1 WHERE status = 'pending' AND (blocker_count = 0 OR stage = 'expand');
DROP INDEX work_item_ready;
CREATE INDEX work_item_ready ON work_item (stage, collection, rank, id) WHERE ready = 1;
CREATE INDEX work_item_later ON work_item (run_at) WHERE status = 'pending' AND ready = 0;

-- Whose turn it is in a stage: the collection that was served longest ago (design section 7, estimate).
CREATE TABLE lane (
  stage      TEXT NOT NULL,
  collection TEXT NOT NULL,
  served     BIGINT NOT NULL,
  PRIMARY KEY (stage, collection)
);

-- 1: the edge keeps the item from starting at all; 0: only from a stage that the route calls gated.
ALTER TABLE work_dep ADD COLUMN at_start BIGINT NOT NULL DEFAULT 0;

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

-- +goose Down
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
ALTER TABLE work_dep DROP COLUMN at_start;
DROP TABLE lane;
DROP INDEX work_item_later;
DROP INDEX work_item_ready;
ALTER TABLE work_item DROP COLUMN ready;
DROP INDEX work_item_graph;
ALTER TABLE work_item DROP COLUMN graph_id;
ALTER TABLE work_item DROP COLUMN volume;
CREATE INDEX work_item_ready ON work_item (stage, rank, id) WHERE status = 'pending';
