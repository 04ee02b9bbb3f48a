-- +goose Up
-- What receivers were told of items. The id is the message's, which all its tries have.
CREATE TABLE delivery (
  id         TEXT PRIMARY KEY,
  subject    TEXT NOT NULL, -- the item that it tells of
  state      TEXT NOT NULL, -- that it tells
  target     TEXT NOT NULL, -- for people
  tries      BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  tried_at   BIGINT,
  sent_at    BIGINT,
  status     BIGINT NOT NULL, -- of the last answer
  error      TEXT NOT NULL,   -- of the last try
  item_id    TEXT NOT NULL    -- of action deliver, that goes on with it
);
CREATE INDEX delivery_subject ON delivery (subject, created_at);

-- +goose Down
DROP TABLE delivery;
