-- +goose Up
-- Schedules, and what became of their times. A schedule's own time has one row at most, whatever number of processes fire it.
CREATE TABLE schedule (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  spec       TEXT NOT NULL,   -- JSON
  version    BIGINT NOT NULL,
  next_at    BIGINT,          -- NULL: no time comes
  paused_at  BIGINT,
  paused_by  TEXT NOT NULL,
  paused_why TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  changed_by TEXT NOT NULL,
  changed_at BIGINT NOT NULL
);

CREATE TABLE schedule_firing (
  id          TEXT PRIMARY KEY,
  schedule_id TEXT NOT NULL,
  tick        BIGINT NOT NULL,
  own         BIGINT NOT NULL, -- 1: a time of the schedule; 0: somebody ran it
  outcome     TEXT NOT NULL,
  item_id     TEXT NOT NULL,   -- '': nothing was submitted
  reason      TEXT NOT NULL,
  missed      BIGINT NOT NULL,
  first_tick  BIGINT,          -- of several missed times
  actor       TEXT NOT NULL,
  at          BIGINT NOT NULL
);

CREATE UNIQUE INDEX schedule_firing_tick ON schedule_firing (schedule_id, tick) WHERE own = 1;
CREATE INDEX schedule_firing_at ON schedule_firing (schedule_id, at, id);
CREATE INDEX schedule_firing_item ON schedule_firing (item_id) WHERE item_id <> '';

-- +goose Down
DROP TABLE schedule_firing;
DROP TABLE schedule;
