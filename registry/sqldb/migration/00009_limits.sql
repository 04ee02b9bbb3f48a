-- +goose Up
-- How many items may run at once, as admins limited it, and how many a collection starts in its turn.
CREATE TABLE work_limit (
  scope  TEXT NOT NULL,    -- stage, collection
  key    TEXT NOT NULL,
  most   BIGINT NOT NULL,  -- 0: any number
  weight BIGINT NOT NULL,  -- 0: 1
  actor  TEXT NOT NULL,
  at     BIGINT NOT NULL,
  PRIMARY KEY (scope, key)
);

-- How many items of a lane with a weight started in its present turn.
ALTER TABLE lane ADD COLUMN taken BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE lane DROP COLUMN taken;
DROP TABLE work_limit;
