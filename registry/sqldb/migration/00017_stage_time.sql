-- +goose Up
-- The steps that were done of a stage, and how many seconds they took: sums in which earlier steps
-- count less and less. seconds / steps is the stage's mean time.
CREATE TABLE stage_time (
  stage   TEXT PRIMARY KEY,
  steps   DOUBLE PRECISION NOT NULL,
  seconds DOUBLE PRECISION NOT NULL
);

-- +goose Down
DROP TABLE stage_time;
