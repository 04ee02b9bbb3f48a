-- +goose Up
-- Long-lived state machines of namespaces. Their steps are items; programs outside Holdfast serve the namespaces.
CREATE TABLE namespace (
  name    TEXT PRIMARY KEY,
  title   TEXT NOT NULL,
  policy  TEXT NOT NULL,  -- JSON
  seen_at BIGINT NOT NULL
);

CREATE TABLE process (
  namespace         TEXT NOT NULL,
  id                TEXT NOT NULL,
  seq               BIGINT NOT NULL,  -- in the order of creation
  collection        TEXT NOT NULL,
  status            TEXT NOT NULL,
  previous_status   TEXT NOT NULL,
  status_changed_at BIGINT NOT NULL,
  detail            TEXT NOT NULL,    -- of its error
  corrupted_by      TEXT NOT NULL,    -- the item of the step that failed, with its kind and context
  corrupted_kind    TEXT NOT NULL,
  context           TEXT NOT NULL,
  state             TEXT NOT NULL,    -- JSON; '': none
  metadata          TEXT NOT NULL,    -- JSON; '': none
  last_event_id     BIGINT NOT NULL,
  steps             BIGINT NOT NULL,  -- how many were ever added
  timer_item        TEXT NOT NULL,    -- the open step that it starts itself; '': none
  tail_item         TEXT NOT NULL,    -- the last open step that somebody asked for; '': none
  created_by        TEXT NOT NULL,
  created_at        BIGINT NOT NULL,
  PRIMARY KEY (namespace, id)
);

CREATE UNIQUE INDEX process_list ON process (seq);
CREATE INDEX process_status ON process (namespace, status, seq);

CREATE TABLE process_event (
  namespace  TEXT NOT NULL,
  process_id TEXT NOT NULL,
  event_id   BIGINT NOT NULL,
  item_id    TEXT NOT NULL,           -- the step that made it; '': imported
  at         BIGINT NOT NULL,
  payload    TEXT NOT NULL,           -- JSON
  metadata   TEXT NOT NULL,           -- JSON; '': none
  PRIMARY KEY (namespace, process_id, event_id)
);

CREATE INDEX process_event_item ON process_event (item_id) WHERE item_id <> '';

CREATE TABLE process_step (
  namespace  TEXT NOT NULL,
  process_id TEXT NOT NULL,
  n          BIGINT NOT NULL,
  item_id    TEXT NOT NULL,
  PRIMARY KEY (namespace, process_id, n)
);

CREATE INDEX process_step_item ON process_step (item_id);

-- +goose Down
DROP TABLE process_step;
DROP TABLE process_event;
DROP TABLE process;
DROP TABLE namespace;
