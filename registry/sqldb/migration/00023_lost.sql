-- +goose Up
-- Events of objects that checkpoints had signed and the record lost, and whose loss two people accepted:
-- those after one number, to another one, which had this hash. Checkpoints repeat them for ever.
CREATE TABLE lost_events (
  object_id TEXT NOT NULL,
  after_seq BIGINT NOT NULL,
  to_seq    BIGINT NOT NULL,
  hash      TEXT NOT NULL,
  PRIMARY KEY (object_id, after_seq, to_seq, hash)
);

-- +goose Down
DROP TABLE lost_events;
