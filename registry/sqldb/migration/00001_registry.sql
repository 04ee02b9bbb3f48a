-- +goose Up
-- The tables of the Registry. Times are unix microseconds, ids are UUIDv7 as text, JSON is text, so that one text
-- serves SQLite and PostgreSQL. event, attempt and command have no foreign key to work_item: they outlive its purge (R28).

CREATE TABLE collection (
  mnemonic   TEXT PRIMARY KEY,
  tenant     TEXT NOT NULL,
  profile    TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE token (
  id         TEXT PRIMARY KEY,
  hash       TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  role       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE upload (
  id         TEXT PRIMARY KEY,
  filename   TEXT NOT NULL,
  size_bytes BIGINT NOT NULL,
  digest     TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE work_item (
  id            TEXT PRIMARY KEY,
  tenant        TEXT NOT NULL,
  collection    TEXT NOT NULL,
  parent_id     TEXT,
  row_no        BIGINT NOT NULL DEFAULT 0,
  action        TEXT NOT NULL,
  stage         TEXT NOT NULL,
  status        TEXT NOT NULL,
  priority      BIGINT NOT NULL,
  rank          BIGINT NOT NULL,             -- created_at + priority * a minute: ageing without updates (R20)
  name          TEXT NOT NULL,
  spec          TEXT NOT NULL,               -- immutable
  state         TEXT NOT NULL DEFAULT '{}',  -- durable results
  fingerprint   TEXT NOT NULL DEFAULT '',    -- of a batch's content and description; '' = not comparable
  size_bytes    BIGINT NOT NULL DEFAULT -1,
  files         BIGINT NOT NULL DEFAULT -1,
  done_bytes    BIGINT NOT NULL DEFAULT 0,
  done_files    BIGINT NOT NULL DEFAULT 0,
  blocker_count BIGINT NOT NULL DEFAULT 0,
  closing       BIGINT NOT NULL DEFAULT 0,   -- batches: times that the last open job settled (R22)
  attempt       BIGINT NOT NULL DEFAULT 0,   -- the fencing token; only grows
  tries         BIGINT NOT NULL DEFAULT 0,   -- counted failures in this stage
  losses        BIGINT NOT NULL DEFAULT 0,   -- lost attempts in a row, charged or not (R13)
  retry_count   BIGINT NOT NULL DEFAULT 0,
  error_class   TEXT NOT NULL DEFAULT '',
  note          TEXT NOT NULL DEFAULT '',
  wait_reason   TEXT NOT NULL DEFAULT '',    -- of a snooze
  run_at        BIGINT NOT NULL,
  nudge_at      BIGINT,                      -- the outbox: when the next message is due
  nudges        BIGINT NOT NULL DEFAULT 0,   -- messages sent since the item became ready and not yet answered
  created_by    TEXT NOT NULL DEFAULT '',
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL,
  finished_at   BIGINT,
  purge_at      BIGINT
);
CREATE UNIQUE INDEX work_item_row ON work_item (parent_id, row_no) WHERE parent_id IS NOT NULL;
CREATE INDEX work_item_ready ON work_item (stage, rank, id) WHERE status = 'pending';
CREATE INDEX work_item_nudge ON work_item (nudge_at) WHERE nudge_at IS NOT NULL;
CREATE INDEX work_item_offered ON work_item (stage) WHERE status = 'pending' AND nudges > 0;
CREATE INDEX work_item_new ON work_item (tenant, created_at, id);
CREATE INDEX work_item_list ON work_item (tenant, action, created_at, id);
CREATE INDEX work_item_collection ON work_item (tenant, collection, created_at, id);
CREATE INDEX work_item_status ON work_item (tenant, status, created_at, id);
CREATE INDEX work_item_children ON work_item (parent_id, status) WHERE parent_id IS NOT NULL;
CREATE INDEX work_item_fingerprint ON work_item (fingerprint) WHERE fingerprint <> '';

CREATE TABLE work_dep (
  item_id      TEXT NOT NULL,
  requires_id  TEXT NOT NULL,
  wait_for     TEXT NOT NULL,  -- success, settled
  satisfied_at BIGINT,
  PRIMARY KEY (item_id, requires_id)
);
CREATE INDEX work_dep_requires ON work_dep (requires_id);

CREATE TABLE attempt (
  item_id      TEXT NOT NULL,
  n            BIGINT NOT NULL,
  request_id   TEXT NOT NULL,
  stage        TEXT NOT NULL,
  worker       TEXT NOT NULL,
  version      TEXT NOT NULL,
  started_at   BIGINT NOT NULL,
  lease_until  BIGINT NOT NULL,
  stuck_after  BIGINT NOT NULL,  -- microseconds without progress
  progress_at  BIGINT NOT NULL,
  max_attempts BIGINT NOT NULL,
  advanced     BIGINT NOT NULL DEFAULT 0,  -- 1: progress moved, so that a loss is not charged (R13)
  snoozes      BIGINT NOT NULL DEFAULT 0,  -- repeated snoozes share one row (R24)
  finished_at  BIGINT,
  outcome      TEXT NOT NULL DEFAULT '',
  error        TEXT NOT NULL DEFAULT '',
  response     TEXT NOT NULL DEFAULT '',   -- the recorded verdict
  progress     TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (item_id, n)
);
CREATE UNIQUE INDEX attempt_request ON attempt (request_id);
CREATE INDEX attempt_live ON attempt (lease_until) WHERE finished_at IS NULL;

CREATE TABLE event (
  id       TEXT PRIMARY KEY,
  feed_seq BIGINT UNIQUE,
  item_id  TEXT NOT NULL,
  attempt  BIGINT NOT NULL,
  type     TEXT NOT NULL,
  actor    TEXT NOT NULL,
  at       BIGINT NOT NULL,
  data     TEXT NOT NULL
);
CREATE INDEX event_item ON event (item_id, feed_seq);

CREATE TABLE command (
  id          TEXT PRIMARY KEY,
  tenant      TEXT NOT NULL,
  idem_key    TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  item_id     TEXT NOT NULL,
  kind        TEXT NOT NULL,
  actor       TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  UNIQUE (tenant, idem_key)
);

CREATE TABLE hold (
  scope      TEXT NOT NULL,
  key        TEXT NOT NULL,
  reason     TEXT NOT NULL,
  actor      TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (scope, key)
);

-- R1: all of an item's keys or none, until it settles.
CREATE TABLE lock (
  key     TEXT PRIMARY KEY,
  item_id TEXT NOT NULL
);
CREATE INDEX lock_item ON lock (item_id);
CREATE TABLE lock_wait (
  key          TEXT NOT NULL,
  item_id      TEXT NOT NULL,
  submitted_at BIGINT NOT NULL, -- locks are granted in submit order
  PRIMARY KEY (key, item_id)
);
CREATE INDEX lock_wait_item ON lock_wait (item_id);

CREATE TABLE reservation (
  item_id TEXT PRIMARY KEY,
  volume  TEXT NOT NULL,
  bytes   BIGINT NOT NULL
);

CREATE TABLE worker (
  id       TEXT PRIMARY KEY,
  version  TEXT NOT NULL,
  slots    TEXT NOT NULL, -- JSON: stage -> {capacity, free}
  draining BIGINT NOT NULL,
  seen_at  BIGINT NOT NULL
);
CREATE TABLE worker_stage (
  worker_id TEXT NOT NULL,
  stage     TEXT NOT NULL,
  capacity  BIGINT NOT NULL,
  seen_at   BIGINT NOT NULL,
  PRIMARY KEY (worker_id, stage)
);

-- R14: the sweep's own pulse.
CREATE TABLE pulse (
  name        TEXT PRIMARY KEY,
  at          BIGINT NOT NULL,
  quiet_until BIGINT NOT NULL
);

CREATE TABLE report (
  batch_id   TEXT NOT NULL,
  closing    BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  jobs       BIGINT NOT NULL,
  completed  BIGINT NOT NULL,
  failed     BIGINT NOT NULL,
  PRIMARY KEY (batch_id, closing)
);
CREATE TABLE report_job (
  batch_id    TEXT NOT NULL,
  closing     BIGINT NOT NULL,
  row_no      BIGINT NOT NULL,
  item_id     TEXT NOT NULL,
  name        TEXT NOT NULL,
  status      TEXT NOT NULL,
  state       TEXT NOT NULL, -- the item's durable results at that moment
  spec        TEXT NOT NULL,
  error       TEXT NOT NULL,
  error_class TEXT NOT NULL,
  PRIMARY KEY (batch_id, closing, row_no)
);

-- The inventory.
CREATE TABLE identifier (
  owner    TEXT NOT NULL,
  local_id TEXT NOT NULL,
  ark      TEXT NOT NULL,
  PRIMARY KEY (owner, local_id)
);
CREATE INDEX identifier_ark ON identifier (ark);
CREATE INDEX identifier_local ON identifier (local_id);
CREATE TABLE object (
  id         TEXT PRIMARY KEY, -- its ARK
  minted_for TEXT NOT NULL,    -- the item that first named it
  tenant     TEXT NOT NULL,
  collection TEXT NOT NULL,
  owner      TEXT NOT NULL,
  title      TEXT NOT NULL DEFAULT '',
  creator    TEXT NOT NULL DEFAULT '',
  date       TEXT NOT NULL DEFAULT '',
  head       BIGINT NOT NULL DEFAULT 0, -- 0: named, no version recorded yet
  files      BIGINT NOT NULL DEFAULT 0,
  size_bytes BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX object_list ON object (tenant, created_at, id) WHERE head > 0;
CREATE TABLE object_version (
  object_id   TEXT NOT NULL,
  version     BIGINT NOT NULL,
  item_id     TEXT NOT NULL,
  status      TEXT NOT NULL, -- intended, recorded
  plan        TEXT NOT NULL,
  files       BIGINT NOT NULL DEFAULT 0,
  size_bytes  BIGINT NOT NULL DEFAULT 0,
  created_at  BIGINT NOT NULL,
  recorded_at BIGINT,
  PRIMARY KEY (object_id, version)
);
CREATE INDEX object_version_item ON object_version (item_id);
CREATE TABLE file (
  object_id    TEXT NOT NULL,
  path         BLOB NOT NULL,   -- bytes: a name may be no UTF-8
  version      BIGINT NOT NULL, -- valid from this version on
  content_path BLOB NOT NULL,
  size_bytes   BIGINT NOT NULL,
  digests      TEXT NOT NULL,
  mime_type    TEXT NOT NULL,
  deleted      BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (object_id, path, version)
);
CREATE TABLE replica (
  object_id   TEXT NOT NULL,
  version     BIGINT NOT NULL,
  storage     TEXT NOT NULL,
  verified_at BIGINT NOT NULL,
  PRIMARY KEY (object_id, version, storage)
);
CREATE TABLE premis_event (
  id        TEXT PRIMARY KEY,
  object_id TEXT NOT NULL,
  version   BIGINT NOT NULL,
  item_id   TEXT NOT NULL,
  type      TEXT NOT NULL,
  at        BIGINT NOT NULL,
  agent     TEXT NOT NULL,
  outcome   TEXT NOT NULL,
  detail    TEXT NOT NULL
);
CREATE INDEX premis_event_object ON premis_event (object_id, at);

-- +goose Down
DROP TABLE premis_event;
DROP TABLE replica;
DROP TABLE file;
DROP TABLE object_version;
DROP TABLE object;
DROP TABLE identifier;
DROP TABLE report_job;
DROP TABLE report;
DROP TABLE pulse;
DROP TABLE worker_stage;
DROP TABLE worker;
DROP TABLE reservation;
DROP TABLE lock_wait;
DROP TABLE lock;
DROP TABLE hold;
DROP TABLE command;
DROP TABLE event;
DROP TABLE attempt;
DROP TABLE work_dep;
DROP TABLE work_item;
DROP TABLE upload;
DROP TABLE token;
DROP TABLE collection;
