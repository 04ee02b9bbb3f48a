-- +goose Up
-- R13: an item that keeps being lost runs alone. This says which worker is kept free for it, or runs it. A row that has come
-- true or untrue by what became of item and worker since is as good as none.
CREATE TABLE alone (
  item_id TEXT PRIMARY KEY,
  worker  TEXT NOT NULL UNIQUE
);

-- +goose Down
DROP TABLE alone;
