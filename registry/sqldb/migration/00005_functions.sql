-- +goose Up
-- What functions take and return, and how their tasks are tried again, as the programs that serve them announced.
CREATE TABLE function (
  name          TEXT PRIMARY KEY,
  title         TEXT NOT NULL,
  args_schema   TEXT NOT NULL,  -- JSON Schema; '': anything
  result_schema TEXT NOT NULL,
  policy        TEXT NOT NULL,  -- JSON
  seen_at       BIGINT NOT NULL
);

-- The key by which a graph knows an item.
CREATE INDEX graph_node_item ON graph_node (item_id);

-- +goose Down
DROP INDEX graph_node_item;
DROP TABLE function;
