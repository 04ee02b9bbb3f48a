-- +goose Up
-- The tables of the Registry. Times are unix microseconds, ids are UUIDv7 as text, JSON is text, so that one text
-- serves SQLite and PostgreSQL. event, attempt and command have no foreign key to work_item: they outlive its purge (R28).
-- Nothing leads back from here: the migrations that follow have a way down, and expand before they contract (docs/contributing.md).

CREATE TABLE collection (
  mnemonic   TEXT PRIMARY KEY,
  tenant     TEXT NOT NULL,
  profile    TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- Of its profile: collection_version has them all.
  version    BIGINT NOT NULL DEFAULT 1
);

CREATE TABLE token (
  id          TEXT PRIMARY KEY,
  hash        TEXT NOT NULL UNIQUE,
  name        TEXT NOT NULL,
  role        TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  collections TEXT NOT NULL DEFAULT '[]',
  created_by  TEXT NOT NULL DEFAULT '',
  expires_at  BIGINT,
  revoked_at  BIGINT,
  -- The stages that a worker's token is good for, with commas between them; '': every stage.
  stages      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX token_name ON token (name);

CREATE TABLE upload (
  id         TEXT PRIMARY KEY,
  filename   TEXT NOT NULL,
  size_bytes BIGINT NOT NULL,
  digest     TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- When it was decided that the bytes of an upload go: it can be submitted no more.
  retired_at BIGINT,
  -- What it counts for its quotas: its collection, and the bytes that it holds in staging.
  collection TEXT NOT NULL DEFAULT '',
  held       BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX upload_held ON upload (created_by, collection, held, retired_at) WHERE held > 0;
CREATE INDEX upload_here ON upload (created_at, id) WHERE retired_at IS NULL;

CREATE TABLE work_item (
  id             TEXT PRIMARY KEY,
  tenant         TEXT NOT NULL,
  collection     TEXT NOT NULL,
  parent_id      TEXT,
  row_no         BIGINT NOT NULL DEFAULT 0,
  action         TEXT NOT NULL,
  stage          TEXT NOT NULL,
  status         TEXT NOT NULL,
  priority       BIGINT NOT NULL,
  rank           BIGINT NOT NULL,             -- created_at + priority * a minute: ageing without updates (R20)
  name           TEXT NOT NULL,
  fingerprint    TEXT NOT NULL DEFAULT '',    -- of a batch's content and description; '' = not comparable
  size_bytes     BIGINT NOT NULL DEFAULT -1,
  files          BIGINT NOT NULL DEFAULT -1,
  done_bytes     BIGINT NOT NULL DEFAULT 0,
  done_files     BIGINT NOT NULL DEFAULT 0,
  blocker_count  BIGINT NOT NULL DEFAULT 0,
  closing        BIGINT NOT NULL DEFAULT 0,   -- batches: times that the last open job settled (R22)
  attempt        BIGINT NOT NULL DEFAULT 0,   -- the fencing token; only grows
  tries          BIGINT NOT NULL DEFAULT 0,   -- counted failures in this stage
  losses         BIGINT NOT NULL DEFAULT 0,   -- lost attempts in a row, charged or not (R13)
  retry_count    BIGINT NOT NULL DEFAULT 0,
  error_class    TEXT NOT NULL DEFAULT '',
  note           TEXT NOT NULL DEFAULT '',
  wait_reason    TEXT NOT NULL DEFAULT '',    -- of a snooze
  run_at         BIGINT NOT NULL,
  nudge_at       BIGINT,                      -- the outbox: when the next message is due
  nudges         BIGINT NOT NULL DEFAULT 0,   -- messages sent since the item became ready and not yet answered
  created_by     TEXT NOT NULL DEFAULT '',
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL,
  finished_at    BIGINT,
  purge_at       BIGINT,
  -- Storage volume that the item's object goes to; '' for items without one.
  volume         TEXT NOT NULL DEFAULT '',
  -- Items that were prepared together.
  graph_id       TEXT NOT NULL DEFAULT '',
  -- What of an item's readiness was found when it was last looked at. Kept by whoever changes one of the facts:
  --   0  it is not pending, or its time has not come. What became due by time is promoted by claim and due.
  --   1  it is pending, due and not blocked: only a hold or a lock can keep it from starting.
  --   2  it is pending and blocked by open prerequisites; unblocked makes it 0 or 1.
  --   3  as 1, but set aside, so that claims need not step over it: a hold on it, its batch or its volume, or a lock,
  --      covered it. Whoever ends that puts it back. A hold on everything, a stage or a collection sets nothing aside.
  ready          BIGINT NOT NULL DEFAULT 0,
  -- The order in which items came, which lists go on by, and by which the text index names them.
  seq            BIGINT NOT NULL DEFAULT 0,
  -- The optional steps of its route that an item takes, each between commas; a batch notes them for its jobs.
  optional       TEXT NOT NULL DEFAULT '',
  -- The storages after the first, which is volume, that an item's version goes to, each between commas.
  other_storages TEXT NOT NULL DEFAULT '',
  -- What a failed item is grouped by: the fingerprint of its cause, and what of the cause its note does not say. '' where it has
  -- not failed, or the cause was not looked at yet: the sweep does that soon.
  cause          TEXT NOT NULL DEFAULT '',
  cause_code     TEXT NOT NULL DEFAULT '',
  cause_host     TEXT NOT NULL DEFAULT '',
  -- row_no of a job is its manifest's line. ordinal is its place among the rows, counted from 1; 0: not counted.
  ordinal        BIGINT NOT NULL DEFAULT 0,
  -- 1: all that an item names lies in our own staging, as what an object manifest lists does not.
  own            BIGINT NOT NULL DEFAULT 0,
  -- How long it has waited for room in its stage, in microseconds.
  room_waited    BIGINT NOT NULL DEFAULT 0,
  -- How far it is with what it changes in storage: '', announced, preserved. Whoever announces or records something for it notes it here.
  commitment     TEXT NOT NULL DEFAULT ''
);

-- What an item is about, apart from where it stands: a transition writes a short row, and this is read when it is claimed or shown.
CREATE TABLE work_detail (
  item_id TEXT PRIMARY KEY REFERENCES work_item (id) ON DELETE CASCADE,
  spec    TEXT NOT NULL,               -- immutable
  results TEXT NOT NULL DEFAULT '{}',  -- durable results
  payload TEXT NOT NULL DEFAULT ''     -- a batch's address, by which the batches of an upload are found
);
CREATE INDEX work_detail_payload ON work_detail (payload) WHERE payload <> '';
CREATE UNIQUE INDEX work_item_row ON work_item (parent_id, row_no) WHERE parent_id IS NOT NULL;
CREATE INDEX work_item_nudge ON work_item (nudge_at) WHERE nudge_at IS NOT NULL;
CREATE INDEX work_item_fingerprint ON work_item (fingerprint) WHERE fingerprint <> '';
CREATE INDEX work_item_graph ON work_item (graph_id) WHERE graph_id <> '';
-- What stands behind the columns that claims look for is for counting what waits without reading its rows.
CREATE INDEX work_item_ready ON work_item (stage, collection, rank, id, run_at, volume) WHERE ready = 1;
CREATE INDEX work_item_express ON work_item (stage, rank, id) WHERE ready = 1 AND rank < 0;
CREATE INDEX work_item_later ON work_item (run_at, stage, collection, volume) WHERE status = 'pending' AND ready = 0;
CREATE INDEX work_item_kept ON work_item (stage, collection, volume) WHERE ready IN (2, 3);
CREATE INDEX work_item_aside_batch ON work_item (parent_id, id) WHERE ready = 3;
CREATE INDEX work_item_aside_volume ON work_item (volume, id) WHERE ready = 3;
CREATE INDEX work_item_offered ON work_item (stage, status, nudges, nudge_at) WHERE status = 'pending' AND nudges > 0;
CREATE INDEX work_item_room ON work_item (stage, status, rank, id) WHERE status = 'pending' AND wait_reason = 'no-space';
-- The collection spares the row where it does not match what was found by its text.
CREATE UNIQUE INDEX work_item_seq ON work_item (seq, collection);
CREATE INDEX work_item_new ON work_item (tenant, created_at, seq);
CREATE INDEX work_item_list ON work_item (action, status, created_at, seq, tenant, collection) WHERE action <> 'ingest';
CREATE INDEX work_item_collection ON work_item (collection, created_at, seq);
CREATE INDEX work_item_place ON work_item (stage, status, tenant, created_at, seq);
CREATE INDEX work_item_collection_place ON work_item (collection, stage, status, tenant, created_at, seq);
CREATE INDEX work_item_by ON work_item (created_by, created_at, seq);
CREATE INDEX work_item_class ON work_item (error_class, created_at, seq, tenant, collection) WHERE error_class <> '';
-- Few items have a note: what is looked for in it is looked for among them.
CREATE INDEX work_item_noted ON work_item (stage, status, tenant, action, created_at, seq) WHERE note <> '';
CREATE INDEX work_item_requeued ON work_item (tenant, created_at, seq) WHERE retry_count > 0;
CREATE INDEX work_item_children ON work_item (parent_id, status, row_no) WHERE parent_id IS NOT NULL;
-- The failed items of everything and of each batch by their causes. Status stands in both, although it is always the same here:
-- SQLite counts the columns by which it may choose an index. What stands behind spares the row where groups are added up.
CREATE INDEX work_item_cause ON work_item (status, cause, created_at, seq, tenant, collection, stage, error_class, action, created_by, finished_at)
  WHERE status = 'failed';
CREATE INDEX work_item_batch_cause ON work_item (parent_id, status, cause, row_no, seq, tenant, collection, finished_at)
  WHERE status = 'failed';
-- What is purged by itself, and when.
CREATE INDEX work_item_purge ON work_item (purge_at) WHERE purge_at IS NOT NULL;
CREATE INDEX work_item_own ON work_item (stage, collection, rank, id) WHERE ready = 1 AND own = 1;

CREATE TABLE work_dep (
  item_id      TEXT NOT NULL,
  requires_id  TEXT NOT NULL,
  wait_for     TEXT NOT NULL,  -- success, settled
  satisfied_at BIGINT,
  -- 1: the edge keeps the item from starting at all; 0: only from a stage that the route calls gated.
  at_start     BIGINT NOT NULL DEFAULT 0,
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
  -- What lets an item go on, as its worker knew.
  remedy       TEXT NOT NULL DEFAULT '',
  -- The token by which it was claimed. NULL: not known; '': a process that has the Registry in itself
  token        TEXT,
  PRIMARY KEY (item_id, n)
);
CREATE UNIQUE INDEX attempt_request ON attempt (request_id);
CREATE INDEX attempt_live ON attempt (lease_until) WHERE finished_at IS NULL;
CREATE INDEX attempt_withdrawn ON attempt (worker, finished_at) WHERE outcome = 'withdrawn';

CREATE TABLE event (
  id         TEXT PRIMARY KEY,
  feed_seq   BIGINT UNIQUE,
  item_id    TEXT NOT NULL,
  attempt    BIGINT NOT NULL,
  type       TEXT NOT NULL,
  actor      TEXT NOT NULL,
  at         BIGINT NOT NULL,
  data       TEXT NOT NULL,
  collection TEXT NOT NULL DEFAULT '',
  -- The act that this event is a part of: one audit entry for all that it changed.
  audit_id   TEXT NOT NULL DEFAULT '',
  -- 1: an act of a person or a refusal, not a part of another act: an entry of the audit log.
  audited    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX event_item ON event (item_id, feed_seq);
CREATE INDEX event_audited ON event (feed_seq) WHERE audited = 1;

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
CREATE INDEX lock_wait_turn ON lock_wait (key, submitted_at, item_id);

CREATE TABLE reservation (
  item_id   TEXT PRIMARY KEY,
  volume    TEXT NOT NULL,
  bytes     BIGINT NOT NULL,
  -- What is still to come of it, max(0, bytes - staged) (R24).
  remaining BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX reservation_volume ON reservation (volume);

CREATE TABLE worker (
  id       TEXT PRIMARY KEY,
  version  TEXT NOT NULL,
  slots    TEXT NOT NULL, -- JSON: stage -> {capacity, free}
  draining BIGINT NOT NULL,
  seen_at  BIGINT NOT NULL,
  -- By which token it was announced: "" by none, by a process that has the Registry in itself; NULL: nobody has said.
  token    TEXT
);

CREATE TABLE worker_stage (
  worker_id TEXT NOT NULL,
  stage     TEXT NOT NULL,
  capacity  BIGINT NOT NULL,
  seen_at   BIGINT NOT NULL,
  -- Those of its slots that no collection takes beside its share, so that a slow source cannot take all.
  spare     BIGINT NOT NULL DEFAULT 0,
  -- For how long a worker's leases are, in microseconds: its slots count no longer.
  lease     BIGINT NOT NULL DEFAULT 60000000,
  PRIMARY KEY (worker_id, stage)
);

-- R14: the sweep's own pulse.
CREATE TABLE pulse (
  name        TEXT PRIMARY KEY,
  at          BIGINT NOT NULL,
  quiet_until BIGINT NOT NULL
);

CREATE TABLE report (
  batch_id      TEXT NOT NULL,
  closing       BIGINT NOT NULL,
  created_at    BIGINT NOT NULL,
  jobs          BIGINT NOT NULL,
  completed     BIGINT NOT NULL,
  failed        BIGINT NOT NULL,
  stopped       BIGINT NOT NULL DEFAULT 0,
  content       BIGINT NOT NULL DEFAULT 0,
  -- the closing of the report before; 0: the difference is not told
  since         BIGINT NOT NULL DEFAULT 0,
  now_completed BIGINT NOT NULL DEFAULT 0,
  still_failed  BIGINT NOT NULL DEFAULT 0,
  newly_failed  BIGINT NOT NULL DEFAULT 0,
  now_stopped   BIGINT NOT NULL DEFAULT 0,
  new_jobs      BIGINT NOT NULL DEFAULT 0,
  preserved     BIGINT NOT NULL DEFAULT 0,
  repeats       BIGINT NOT NULL DEFAULT 0,
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
  -- What a report says of each job beside what it came to: the stage where it stands, what is known of why it failed and of what
  -- puts it right, and what changed since the report before.
  stage       TEXT NOT NULL DEFAULT '',
  cause       TEXT NOT NULL DEFAULT '',
  code        TEXT NOT NULL DEFAULT '',
  remedy      TEXT NOT NULL DEFAULT '',
  change      TEXT NOT NULL DEFAULT '',
  -- 1: the job did not complete although its object is preserved.
  preserved   BIGINT NOT NULL DEFAULT 0,
  ordinal     BIGINT NOT NULL DEFAULT 0,
  -- 1: the job's row repeats an earlier row of its batch.
  repeats     BIGINT NOT NULL DEFAULT 0,
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
  id             TEXT PRIMARY KEY, -- its ARK
  minted_for     TEXT NOT NULL,    -- the item that first named it
  tenant         TEXT NOT NULL,
  collection     TEXT NOT NULL,
  owner          TEXT NOT NULL,
  title          TEXT NOT NULL DEFAULT '',
  creator        TEXT NOT NULL DEFAULT '',
  date           TEXT NOT NULL DEFAULT '',
  head           BIGINT NOT NULL DEFAULT 0, -- 0: named, no version recorded yet
  files          BIGINT NOT NULL DEFAULT 0,
  size_bytes     BIGINT NOT NULL DEFAULT 0,
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL,
  -- What readers of an object are told: '' is preserved; deleting, deleted.
  gone           TEXT NOT NULL DEFAULT '',
  -- Names that EZID knows, by the item that each was chosen for; '' for the others.
  ezid_item      TEXT NOT NULL DEFAULT '',
  -- When somebody asked that all files of an object be checked: those that were not since then are due.
  check_asked_at BIGINT
);
CREATE INDEX object_list ON object (tenant, created_at, id) WHERE head > 0;
CREATE INDEX object_check_asked ON object (check_asked_at, id) WHERE check_asked_at IS NOT NULL;

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
  -- What a file is in a registry of formats, as JSON; '' when nobody asked, or nothing fitted.
  format       TEXT NOT NULL DEFAULT '',
  -- When a file was last changed by its producer, as its source told; NULL when nobody knows.
  modified_at  BIGINT,
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
  detail    TEXT NOT NULL,
  -- An object's preservation events are chained: seq counts them from 1 on, hash is of the event and of the hash before it.
  seq       BIGINT NOT NULL DEFAULT 0,
  hash      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX premis_event_object ON premis_event (object_id, at);
CREATE INDEX premis_event_chain ON premis_event (object_id, seq, at, id);

-- Whose turn it is in a stage: the collection that was served longest ago. active is 1 for
-- every collection that has an item with ready = 1 in the stage; a claim that finds none makes it 0.
CREATE TABLE lane (
  stage      TEXT NOT NULL,
  collection TEXT NOT NULL,
  served     BIGINT NOT NULL, -- number of the claim that served it last, counted per stage
  active     BIGINT NOT NULL,
  PRIMARY KEY (stage, collection)
);
CREATE INDEX lane_turn ON lane (stage, served, collection) WHERE active = 1;
CREATE INDEX lane_served ON lane (stage, served);

-- Holds that are gone, and how far the items that they had set aside are put back.
CREATE TABLE putback (
  scope    TEXT NOT NULL,
  key      TEXT NOT NULL,
  after_id TEXT NOT NULL,
  PRIMARY KEY (scope, key)
);

-- The sum of what is still to come of the reservations on each volume.
CREATE TABLE promised (
  volume   TEXT PRIMARY KEY,
  bytes    BIGINT NOT NULL,
  -- When an item was last given room.
  given_at BIGINT NOT NULL DEFAULT 0
);

-- Submissions that depend on each other: work_item.graph_id. Nothing of a graph starts before it is sealed.
CREATE TABLE graph (
  id         TEXT PRIMARY KEY,
  tenant     TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  sealed_at  BIGINT
);

-- What whoever prepared an item calls it. It outlives the item's purge, so that a repeated call is answered alike (R28).
CREATE TABLE graph_node (
  graph_id TEXT NOT NULL,
  key      TEXT NOT NULL,
  item_id  TEXT NOT NULL,
  PRIMARY KEY (graph_id, key)
);

-- Whether submissions are taken, and whatever else is one value for all.
CREATE TABLE setting (
  name   TEXT PRIMARY KEY,
  value  TEXT NOT NULL,
  reason TEXT NOT NULL,
  actor  TEXT NOT NULL,
  at     BIGINT NOT NULL
);

-- +dialect sqlite
-- A trigram is all that the index finds at once, so collections are known to it by three letters. Beyond 46,656 collections
-- some share theirs, which costs time and nothing else.
CREATE TABLE item_text_collection (
  no    INTEGER PRIMARY KEY,
  name  TEXT NOT NULL UNIQUE,
  token TEXT NOT NULL GENERATED ALWAYS AS (
    substr('0123456789abcdefghijklmnopqrstuvwxyz', no / 1296 % 36 + 1, 1) ||
    substr('0123456789abcdefghijklmnopqrstuvwxyz', no / 36 % 36 + 1, 1) ||
    substr('0123456789abcdefghijklmnopqrstuvwxyz', no % 36 + 1, 1)) STORED
);

-- +dialect postgres
-- Every change of a row of work_item is a new row version, which all indexes on it pay for: the one of text is the dearest.
CREATE TABLE item_text (
  seq    BIGINT PRIMARY KEY,
  name   TEXT NOT NULL,
  note   TEXT NOT NULL,
  places TEXT[] NOT NULL -- c:COLLECTION, and s:STATUS of a settled item with a note
);

-- +dialect all
-- R13: an item that keeps being lost runs alone. This says which worker is kept free for it, or runs it. A row that has come
-- true or untrue by what became of item and worker since is as good as none.
CREATE TABLE alone (
  item_id TEXT PRIMARY KEY,
  worker  TEXT NOT NULL UNIQUE
);

-- What the sources of a collection's deposits ask for. The secret is sealed under a key that is not in here, and bound to the
-- other columns but the last two.
CREATE TABLE credential (
  collection TEXT NOT NULL,
  origin     TEXT NOT NULL, -- https://HOST[:PORT] or s3://BUCKET
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL, -- user, or id of the access key
  endpoint   TEXT NOT NULL,
  region     TEXT NOT NULL,
  path_style BIGINT NOT NULL,
  sealed     TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (collection, origin)
);

-- Uploads that are on their way. One that has ended is a row of upload instead; one that was given up stays until nobody can
-- write its bytes any more. n is the fencing token of who takes it forward.
CREATE TABLE incoming (
  id         TEXT PRIMARY KEY,
  filename   TEXT NOT NULL,
  size_bytes BIGINT NOT NULL,              -- -1: not known yet
  acked      BIGINT NOT NULL DEFAULT 0,    -- bytes that are durable
  digest     TEXT NOT NULL,
  metadata   TEXT NOT NULL,
  state      TEXT NOT NULL DEFAULT 'null',
  n          BIGINT NOT NULL DEFAULT 0,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  dropped_at BIGINT,
  -- That it counts for.
  collection TEXT NOT NULL DEFAULT ''
);
CREATE INDEX incoming_of ON incoming (created_by, created_at) WHERE dropped_at IS NULL;
CREATE INDEX incoming_expiring ON incoming (expires_at) WHERE dropped_at IS NULL;
CREATE INDEX incoming_dropped ON incoming (dropped_at) WHERE dropped_at IS NOT NULL;

-- What is signed of a version's receipt. Its lines of files and events are those of the inventory.
CREATE TABLE receipt (
  object_id   TEXT NOT NULL,
  version     BIGINT NOT NULL,
  key_id      TEXT NOT NULL,
  head        TEXT NOT NULL,
  signature   TEXT NOT NULL,   -- base64
  first_event BIGINT NOT NULL, -- seq of the first event that it holds
  last_event  BIGINT NOT NULL, -- and of the last
  last_hash   TEXT NOT NULL,   -- hash of the last
  PRIMARY KEY (object_id, version)
);

-- The public keys of all receipts, for ever.
CREATE TABLE receipt_key (
  id            TEXT PRIMARY KEY,
  public_key    TEXT NOT NULL, -- hex
  first_used_at BIGINT NOT NULL
);

-- Deletions of objects: asked for by one person, approved by another, carried out by an item. The row of the approved one stays as the
-- object's tombstone.
CREATE TABLE deletion (
  id         TEXT PRIMARY KEY,
  object_id  TEXT NOT NULL,
  status     TEXT NOT NULL,              -- asked, withdrawn, approved, deleting, deleted
  reason     TEXT NOT NULL,
  asked_by   TEXT NOT NULL,
  asked_at   BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,            -- when asking ends, if nobody has approved
  closed_by  TEXT NOT NULL DEFAULT '',   -- who approved or withdrew it
  closed_at  BIGINT NOT NULL DEFAULT 0,
  item_id    TEXT NOT NULL DEFAULT '',   -- that carries it out
  deleted_at BIGINT NOT NULL DEFAULT 0,
  head       BIGINT NOT NULL DEFAULT 0,  -- the last version there was
  inventory  TEXT NOT NULL DEFAULT '',   -- the digest of its inventory, ALG:HEX
  files      TEXT NOT NULL DEFAULT ''    -- the digest of the list of its files, ALG:HEX
);
CREATE INDEX deletion_of ON deletion (object_id, asked_at);
CREATE INDEX deletion_by ON deletion (item_id) WHERE item_id <> '';

-- The files as they lie in storage: a row each, however many names a file has in how many versions.
CREATE TABLE stored_file (
  object_id    TEXT NOT NULL,
  content_path BLOB NOT NULL,
  version      BIGINT NOT NULL,          -- that it came with
  size_bytes   BIGINT NOT NULL,
  digests      TEXT NOT NULL,
  checked_at   BIGINT NOT NULL,          -- when it was last found right in every storage
  damaged_at   BIGINT,                   -- since when it is known not to be
  item_id      TEXT NOT NULL DEFAULT '', -- its check that waits, runs or failed
  PRIMARY KEY (object_id, content_path)
);
CREATE INDEX stored_file_due ON stored_file (checked_at, object_id, content_path) WHERE item_id = '';
CREATE INDEX stored_file_object ON stored_file (object_id, checked_at);
CREATE INDEX stored_file_item ON stored_file (item_id) WHERE item_id <> '';
CREATE INDEX stored_file_damaged ON stored_file (object_id) WHERE damaged_at IS NOT NULL;

-- Restores: versions of objects that were brought, or are being brought, to where they are fetched. A row outlives its item and its file.
CREATE TABLE restore (
  item_id    TEXT PRIMARY KEY,
  object_id  TEXT NOT NULL,
  n          BIGINT NOT NULL,             -- its number among the object's, from 1 on
  version    BIGINT NOT NULL,
  reason     TEXT NOT NULL,
  asked_by   TEXT NOT NULL,
  asked_at   BIGINT NOT NULL,
  name       TEXT NOT NULL DEFAULT '',    -- of the file, for people
  place      TEXT NOT NULL DEFAULT '',    -- its key on the staging volume
  size_bytes BIGINT NOT NULL DEFAULT 0,
  sha256     TEXT NOT NULL DEFAULT '',
  files      BIGINT NOT NULL DEFAULT 0,
  ready_at   BIGINT NOT NULL DEFAULT 0,   -- 0: it is not, or not yet
  expires_at BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX restore_of ON restore (object_id, n);

-- What receivers were told of items. The id is the message's, which all its tries have. Whether anybody goes on with a message is the
-- status of the item that does: item_id, or the job that tells it itself.
CREATE TABLE delivery (
  id          TEXT PRIMARY KEY,
  subject     TEXT NOT NULL, -- the item that it tells of
  state       TEXT NOT NULL, -- that it tells
  target      TEXT NOT NULL, -- for people
  tries       BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  tried_at    BIGINT,
  sent_at     BIGINT,
  http_status BIGINT NOT NULL, -- of the last answer
  error       TEXT NOT NULL,   -- of the last try
  item_id     TEXT NOT NULL,   -- of action deliver, that goes on with it, or did, and may be gone; '': its job tells it itself
  -- By which way a message goes: callback, or mail- and what the mail tells.
  kind        TEXT NOT NULL DEFAULT 'callback'
);
CREATE INDEX delivery_subject ON delivery (subject, created_at);
CREATE INDEX delivery_untold ON delivery (tried_at) WHERE sent_at IS NULL AND tries > 0;

-- Every profile that a collection has had.
CREATE TABLE collection_version (
  mnemonic   TEXT   NOT NULL,
  version    BIGINT NOT NULL, -- from 1 on
  profile    TEXT   NOT NULL,
  actor      TEXT   NOT NULL, -- '' where it is not known
  created_at BIGINT NOT NULL,
  PRIMARY KEY (mnemonic, version)
);

-- A report that is being made: its rows are in report_job, and nobody sees them before it is in report. copied is the last of
-- them, seen the last event whose change is in them.
CREATE TABLE report_draft (
  batch_id TEXT NOT NULL,
  closing  BIGINT NOT NULL,
  copied   BIGINT NOT NULL,
  seen     BIGINT NOT NULL,
  PRIMARY KEY (batch_id, closing)
);

-- Who is told of the events of the feed, and how far they have been told.
CREATE TABLE subscription (
  id            TEXT PRIMARY KEY,
  name          TEXT NOT NULL UNIQUE,
  target        TEXT NOT NULL,
  filter        TEXT NOT NULL,   -- JSON
  told_up_to    BIGINT NOT NULL, -- the cursor: of the last event that was acknowledged, or not taken
  told          BIGINT NOT NULL, -- how many were acknowledged
  told_at       BIGINT,
  turn          BIGINT NOT NULL, -- fences whoever forwards
  rewinds       BIGINT NOT NULL,
  owner         TEXT NOT NULL,   -- the process that forwards; '': none
  lease_until   BIGINT NOT NULL,
  paused_at     BIGINT,
  paused_by     TEXT NOT NULL,
  paused_why    TEXT NOT NULL,
  failing_since BIGINT,
  tries         BIGINT NOT NULL,
  error         TEXT NOT NULL,
  next_try      BIGINT,
  created_by    TEXT NOT NULL,
  created_at    BIGINT NOT NULL
);

-- Browsers that have signed in, and one-time links by which they can. A row goes when it ends; events tell that it was.
CREATE TABLE session (
  id          TEXT PRIMARY KEY,
  hash        TEXT NOT NULL UNIQUE, -- SHA-256 of what the cookie holds
  token_id    TEXT NOT NULL,        -- '': signed in at an OpenID provider
  subject     TEXT NOT NULL,        -- who that is there; '': a token's session
  name        TEXT NOT NULL,
  role        TEXT NOT NULL,
  collections TEXT NOT NULL,        -- JSON
  method      TEXT NOT NULL,
  agent       TEXT NOT NULL,
  address     TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  seen_at     BIGINT NOT NULL,
  idle        BIGINT NOT NULL,      -- microseconds that it may go unused
  expires_at  BIGINT NOT NULL
);

CREATE TABLE sign_in_link (
  hash       TEXT PRIMARY KEY,
  token_id   TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);

-- How many addresses of others a token's submissions have named in a day, counted from 1970, UTC.
CREATE TABLE mail_named (
  token     TEXT NOT NULL,
  day       BIGINT NOT NULL,
  addresses BIGINT NOT NULL,
  PRIMARY KEY (token, day)
);

-- The oldest program, by the newest migration that it knows, which this schema still serves.
INSERT INTO setting (name, value, reason, actor, at) VALUES ('schema-serves', '1', '', 'registry', 0);

-- +dialect postgres
-- Which statuses there are depends on the stage, and what an item waits for on its place.
CREATE STATISTICS work_item_places (mcv) ON stage, status FROM work_item;

-- +dialect all
-- The text of items in a table of its own, with what narrows a search beside it, so that the text index itself intersects them: a
-- word may be common in the Registry and absent where it is looked for. What an item is searched by changes with its name and note,
-- and with its status only where there is a note and the item settles or is sent back: a claim of an item pays nothing for it.
-- +dialect sqlite
CREATE VIEW item_words AS SELECT i.seq, i.name, i.note, c.token AS collection,
  CASE WHEN i.note <> '' AND i.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') THEN substr(i.status, 1, 3) ELSE '' END AS status
  FROM work_item i JOIN item_text_collection c ON c.name = i.collection;

CREATE VIRTUAL TABLE item_text USING fts5(name, note, collection, status, content='item_words', content_rowid='seq', tokenize='trigram', columnsize=0);

-- +goose StatementBegin
CREATE TRIGGER item_text_new AFTER INSERT ON work_item BEGIN
  INSERT INTO item_text_collection (name) SELECT NEW.collection
    WHERE NOT EXISTS (SELECT 1 FROM item_text_collection WHERE name = NEW.collection);
  INSERT INTO item_text (rowid, name, note, collection, status)
    SELECT seq, name, note, collection, status FROM item_words WHERE seq = NEW.seq;
END;
-- +goose StatementEnd

-- The index has to be told what it had.
-- +goose StatementBegin
CREATE TRIGGER item_text_changed BEFORE UPDATE OF name, note, status ON work_item
WHEN OLD.name <> NEW.name OR OLD.note <> NEW.note OR NEW.note <> '' AND OLD.status <> NEW.status AND (
  OLD.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') OR NEW.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted'))
BEGIN
  INSERT INTO item_text (item_text, rowid, name, note, collection, status)
    SELECT 'delete', seq, name, note, collection, status FROM item_words WHERE seq = OLD.seq;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER item_text_became AFTER UPDATE OF name, note, status ON work_item
WHEN OLD.name <> NEW.name OR OLD.note <> NEW.note OR NEW.note <> '' AND OLD.status <> NEW.status AND (
  OLD.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') OR NEW.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted'))
BEGIN
  INSERT INTO item_text (rowid, name, note, collection, status)
    SELECT seq, name, note, collection, status FROM item_words WHERE seq = NEW.seq;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER item_text_gone BEFORE DELETE ON work_item BEGIN
  INSERT INTO item_text (item_text, rowid, name, note, collection, status)
    SELECT 'delete', seq, name, note, collection, status FROM item_words WHERE seq = OLD.seq;
END;
-- +goose StatementEnd

-- +dialect postgres
-- +goose StatementBegin
CREATE FUNCTION item_text_places(collection TEXT, status TEXT, note TEXT) RETURNS TEXT[] LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN note <> '' AND status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted')
    THEN ARRAY['c:' || collection, 's:' || status] ELSE ARRAY['c:' || collection] END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION item_text_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM item_text WHERE seq = OLD.seq;
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE item_text SET name = NEW.name, note = NEW.note, places = item_text_places(NEW.collection, NEW.status, NEW.note)
      WHERE seq = NEW.seq;
  ELSE
    INSERT INTO item_text (seq, name, note, places)
      VALUES (NEW.seq, NEW.name, NEW.note, item_text_places(NEW.collection, NEW.status, NEW.note));
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER item_text_new AFTER INSERT ON work_item FOR EACH ROW EXECUTE FUNCTION item_text_follows();

CREATE TRIGGER item_text_gone AFTER DELETE ON work_item FOR EACH ROW EXECUTE FUNCTION item_text_follows();

CREATE TRIGGER item_text_became AFTER UPDATE OF name, note, status ON work_item FOR EACH ROW
  WHEN (OLD.name <> NEW.name OR OLD.note <> NEW.note OR NEW.note <> '' AND OLD.status <> NEW.status AND (
    OLD.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') OR NEW.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted')))
  EXECUTE FUNCTION item_text_follows();

-- By its trigrams. The extension may lie in whatever schema; the lock is for several schemas of one database that are migrated at
-- once.
-- +goose StatementBegin
DO $$
DECLARE home TEXT;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('holdfast pg_trgm'));
  CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
  SELECT n.nspname INTO home FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX item_text_words ON item_text USING gin (name %I.gin_trgm_ops, note %I.gin_trgm_ops, places)', home, home);
END $$;
-- +goose StatementEnd

-- An item that failed and goes on has no cause, whoever sends it on: if it fails again, that must not count as what it was.
-- +goose StatementBegin
CREATE FUNCTION work_item_cause_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.cause := '';
  NEW.cause_code := '';
  NEW.cause_host := '';
  RETURN NEW;
END $$;
-- +goose StatementEnd

CREATE TRIGGER work_item_cause_ends BEFORE UPDATE OF status ON work_item FOR EACH ROW
  WHEN (OLD.status = 'failed' AND NEW.status <> 'failed') EXECUTE FUNCTION work_item_cause_ends();

-- +dialect all
-- Whoever saves a profile makes a version of it, or a batch would be told to have a version that is another profile.
-- +dialect sqlite
-- +goose StatementBegin
CREATE TRIGGER collection_created AFTER INSERT ON collection
BEGIN
  INSERT INTO collection_version (mnemonic, version, profile, actor, created_at)
    VALUES (NEW.mnemonic, NEW.version, NEW.profile, '', NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER collection_changed AFTER UPDATE OF profile ON collection WHEN NEW.version = OLD.version AND NEW.profile <> OLD.profile
BEGIN
  UPDATE collection SET version = OLD.version + 1 WHERE mnemonic = NEW.mnemonic;
  INSERT INTO collection_version (mnemonic, version, profile, actor, created_at)
    VALUES (NEW.mnemonic, OLD.version + 1, NEW.profile, '', CAST(unixepoch('subsec') * 1000000 AS INTEGER));
END;
-- +goose StatementEnd

-- +dialect postgres
-- +goose StatementBegin
CREATE FUNCTION collection_versioned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    NEW.version := OLD.version + 1;
  END IF;
  INSERT INTO collection_version (mnemonic, version, profile, actor, created_at)
    VALUES (NEW.mnemonic, NEW.version, NEW.profile, '', CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT));
  RETURN NEW;
END $$;
-- +goose StatementEnd

CREATE TRIGGER collection_created AFTER INSERT ON collection FOR EACH ROW EXECUTE FUNCTION collection_versioned();

CREATE TRIGGER collection_changed BEFORE UPDATE OF profile ON collection FOR EACH ROW
  WHEN (NEW.version = OLD.version AND NEW.profile <> OLD.profile) EXECUTE FUNCTION collection_versioned();

-- +dialect all
-- What this Registry is called by those who hear of several. A copy of the database is the same one.
-- +dialect sqlite
INSERT INTO setting (name, value, reason, actor, at)
  SELECT 'source', 'urn:uuid:' || lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
    || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))), '', 'registry', 0;

-- +dialect postgres
INSERT INTO setting (name, value, reason, actor, at) SELECT 'source', 'urn:uuid:' || CAST(gen_random_uuid() AS TEXT), '', 'registry', 0;

-- +dialect all
