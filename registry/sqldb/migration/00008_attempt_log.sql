-- +goose Up
-- What steps logged. Lines without a row were dropped, by the worker or because newer ones took their place.
CREATE TABLE attempt_log (
  item_id TEXT NOT NULL,
  n       BIGINT NOT NULL,  -- of the attempt
  seq     BIGINT NOT NULL,  -- in the attempt, from 1
  at      BIGINT NOT NULL,
  level   TEXT NOT NULL,
  text    TEXT NOT NULL,
  PRIMARY KEY (item_id, n, seq)
);

-- +goose Down
DROP TABLE attempt_log;
