-- +goose Up
-- How long an item has waited for room in its stage, and when an item was last given some on a volume, in microseconds. It only adds: what programs
-- of the version before do does not count.
ALTER TABLE work_item ADD COLUMN room_waited BIGINT NOT NULL DEFAULT 0;
ALTER TABLE promised ADD COLUMN given_at BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE promised DROP COLUMN given_at;
ALTER TABLE work_item DROP COLUMN room_waited;
