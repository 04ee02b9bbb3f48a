-- +goose Up
-- Holds on volumes, dependencies, fair turns between collections, tokens bound to collections, bulk acts. It only adds,
-- so that the version before goes on working on it (R27).

-- Storage volume that the item's object goes to; '' for items without one.
ALTER TABLE work_item ADD COLUMN volume TEXT NOT NULL DEFAULT '';
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
CREATE INDEX work_item_ready ON work_item (stage, collection, rank, id) WHERE ready = 1;
CREATE INDEX work_item_express ON work_item (stage, rank, id) WHERE ready = 1 AND rank < 0;
CREATE INDEX work_item_later ON work_item (run_at) WHERE status = 'pending' AND ready = 0;
CREATE INDEX work_item_aside_batch ON work_item (parent_id, id) WHERE ready = 3;
CREATE INDEX work_item_aside_volume ON work_item (volume, id) WHERE ready = 3;
CREATE INDEX work_item_room ON work_item (stage, rank, id) WHERE status = 'pending' AND wait_reason = 'no-space';
CREATE INDEX lock_wait_turn ON lock_wait (key, submitted_at, item_id);

-- Whose turn it is in a stage: the collection that was served longest ago (design section 7, estimate). active is 1 for
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

CREATE INDEX attempt_withdrawn ON attempt (worker, finished_at) WHERE outcome = 'withdrawn';

ALTER TABLE event ADD COLUMN collection TEXT NOT NULL DEFAULT '';
-- The act that this event is a part of: one audit entry for all that it changed.
ALTER TABLE event ADD COLUMN audit_id TEXT NOT NULL DEFAULT '';

ALTER TABLE token ADD COLUMN collections TEXT NOT NULL DEFAULT '[]';
ALTER TABLE token ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN expires_at BIGINT;
ALTER TABLE token ADD COLUMN revoked_at BIGINT;

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
ALTER TABLE token DROP COLUMN revoked_at;
ALTER TABLE token DROP COLUMN expires_at;
ALTER TABLE token DROP COLUMN created_by;
ALTER TABLE token DROP COLUMN collections;
ALTER TABLE event DROP COLUMN audit_id;
ALTER TABLE event DROP COLUMN collection;
DROP INDEX attempt_withdrawn;
ALTER TABLE work_dep DROP COLUMN at_start;
DROP TABLE promised;
ALTER TABLE reservation DROP COLUMN remaining;
DROP TABLE putback;
DROP TABLE lane;
DROP INDEX lock_wait_turn;
DROP INDEX work_item_room;
DROP INDEX work_item_aside_volume;
DROP INDEX work_item_aside_batch;
DROP INDEX work_item_later;
DROP INDEX work_item_express;
DROP INDEX work_item_ready;
ALTER TABLE work_item DROP COLUMN ready;
DROP INDEX work_item_graph;
ALTER TABLE work_item DROP COLUMN graph_id;
ALTER TABLE work_item DROP COLUMN volume;
CREATE INDEX work_item_ready ON work_item (stage, rank, id) WHERE status = 'pending';
