-- +goose Up
-- Slots that a slow source cannot take: spare are those of a worker's slots that no collection takes beside its share, and
-- own says that all that an item names lies in our own staging, as what an object manifest lists does not. It only adds: what programs of the version before write counts as outside.
ALTER TABLE worker_stage ADD COLUMN spare BIGINT NOT NULL DEFAULT 0;
ALTER TABLE work_item ADD COLUMN own BIGINT NOT NULL DEFAULT 0;
-- +dialect sqlite
UPDATE work_item SET own = 1 WHERE status IN ('prepare', 'pending', 'running', 'failed', 'cancelled') AND action IN ('batch', 'ingest')
  AND json_extract(spec, '$.url') LIKE 'upload:%' AND (action = 'batch' OR json_extract(spec, '$.type') <> 'object-manifest');
-- +dialect postgres
UPDATE work_item SET own = 1 WHERE status IN ('prepare', 'pending', 'running', 'failed', 'cancelled') AND action IN ('batch', 'ingest')
  AND (spec::json ->> 'url') LIKE 'upload:%' AND (action = 'batch' OR (spec::json ->> 'type') <> 'object-manifest');
-- +dialect all
CREATE INDEX work_item_own ON work_item (stage, collection, rank, id) WHERE ready = 1 AND own = 1;

-- +goose Down
DROP INDEX work_item_own;
ALTER TABLE work_item DROP COLUMN own;
ALTER TABLE worker_stage DROP COLUMN spare;
