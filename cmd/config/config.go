// Package config reads Holdfast's configuration: from the environment, then from a file, then from
// parameters of AWS Systems Manager. No other package does. The tags of [Config] are also the source
// of docs/configuration.md.
//
// It reports all faults at once, and with them the unknown names that begin with HOLDFAST_, so that a
// misspelt limit never becomes the default in silence ([Unknown]). An empty value counts as not set,
// because compose files and task definitions make it of an absent one.
package config

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/holdfast/holdfast/backup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/webserver"
)

// Prefix begins the names of all settings.
const Prefix = "HOLDFAST"

// Config is the configuration. Its tags are the source of docs/configuration.md:
//
//   - envconfig: the name after HOLDFAST_
//   - subject: the heading of this field and those after it
//   - secret: messages never show the value
//   - for: its users: registry, up, migrate, broker, commands, worker (every stage), fetching (the
//     stages that fetch from sources), or single stages. docker/compose.yaml and
//     ecs/services.yaml pass a stage the settings that name it or fetching.
//   - want: the form of a value
//   - desc: what it does
//   - otherwise: what applies if it is not set, unless [Default] has a value
type Config struct {
	// Unknown are variables that look like settings and are none.
	Unknown []Unknown `ignored:"true"`

	ConfigFile string   `envconfig:"CONFIG_FILE" subject:"Where settings come from" for:"registry up migrate broker commands worker" want:"a file with lines of NAME=VALUE" desc:"Settings that the environment does not have. Empty lines and lines that begin with # do not count; quotes around a value do not belong to it. It may have names that begin with AWS_, too."`
	Parameters []string `envconfig:"PARAMETERS" for:"registry up migrate broker commands worker" want:"paths in AWS Systems Manager Parameter Store, separated by commas, such as /holdfast/download,/holdfast" desc:"Settings that neither the environment nor the file has: the parameter /holdfast/NAAN is HOLDFAST_NAAN. Each needs ssm:GetParametersByPath. The first path that has a setting counts."`

	URL       string `envconfig:"URL" subject:"The service's address" for:"commands worker" want:"an http or https address, such as http://127.0.0.1:8080" desc:"The address of the service." otherwise:"the one in client.json of --dir"`
	Token     string `envconfig:"TOKEN" secret:"true" for:"worker commands" want:"a bearer token" desc:"The token to show the service. A worker's token has the role worker." otherwise:"the one in client.json of --dir"`
	CAFile    string `envconfig:"CA_FILE" for:"commands worker" want:"a PEM file of certificate authorities" desc:"Certificate authorities to trust for the service, in addition to the machine's."`
	PlainHTTP Yes    `envconfig:"PLAIN_HTTP" for:"registry up worker commands" want:"yes or no" desc:"Allow plain HTTP on an address that is not loopback. Without it, a process refuses to start so. The image sets yes."`

	Listen         string   `envconfig:"LISTEN" subject:"Listening and HTTPS" for:"registry up worker broker" want:"an address to listen on, such as 127.0.0.1:8080" desc:"Where the API, the pages, /healthz, /readyz and /metrics answer. A worker answers only the last three, and only if this is set. A broker's default port is 4151."`
	TLSCert        string   `envconfig:"TLS_CERT" for:"registry up" want:"the PEM file of a certificate chain" desc:"Serve HTTPS with this certificate. The file is read again when it changes (docs/security.md#tls)." otherwise:"plain HTTP"`
	TLSKey         string   `envconfig:"TLS_KEY" for:"registry up" want:"the PEM file of the certificate's key" desc:"The key of HOLDFAST_TLS_CERT."`
	ACMEHosts      []string `envconfig:"ACME_HOSTS" for:"registry up" want:"names separated by commas, such as holdfast.example.org" desc:"Get certificates for these names by ACME."`
	ACMEEmail      string   `envconfig:"ACME_EMAIL" for:"registry up" want:"a mail address" desc:"The contact address for the certificate authority."`
	ACMEDirectory  string   `envconfig:"ACME_DIRECTORY" for:"registry up" want:"the https address of an ACME directory" desc:"The certificate authority." otherwise:"Let's Encrypt"`
	ACMECache      string   `envconfig:"ACME_CACHE" for:"registry up" want:"a folder" desc:"Where certificates are kept. registry needs it with HOLDFAST_ACME_HOSTS." otherwise:"with up: its folder"`
	TrustedProxies Networks `envconfig:"TRUSTED_PROXIES" for:"registry up" want:"networks or addresses of reverse proxies separated by commas, such as 10.0.0.0/8,127.0.0.1" desc:"Reverse proxies whose X-Forwarded-For, -Proto and -Host are believed."`
	HSTS           Span     `envconfig:"HSTS" for:"registry up" want:"a duration from 0 on, such as 8760h; 0 leaves it to browsers" desc:"How long browsers keep to HTTPS after a visit (Strict-Transport-Security). Never sent for localhost and IP addresses."`

	SessionIdle          Duration `envconfig:"SESSION_IDLE" subject:"Signing in" for:"registry up" want:"a duration above 0, such as 4h" desc:"How long a session lasts unused."`
	SessionMost          Duration `envconfig:"SESSION_MOST" for:"registry up" want:"a duration above 0, such as 24h" desc:"How long a session lasts at most."`
	OIDCIssuer           string   `envconfig:"OIDC_ISSUER" for:"registry up" want:"the https address of an OpenID provider, such as https://login.example.org/realms/library" desc:"Let people sign in at this OpenID provider (docs/security.md#at-an-openid-provider)."`
	OIDCClientID         string   `envconfig:"OIDC_CLIENT_ID" for:"registry up" want:"a client id" desc:"This Holdfast's client id there. Needed with an issuer."`
	OIDCClientSecret     string   `envconfig:"OIDC_CLIENT_SECRET" secret:"true" for:"registry up" want:"the client's secret at the OpenID provider" desc:"This Holdfast's client secret there."`
	OIDCScopes           []string `envconfig:"OIDC_SCOPES" for:"registry up" want:"scopes separated by commas, such as email,profile,groups" desc:"Scopes to request in addition to openid." otherwise:"email,profile"`
	OIDCNameClaim        string   `envconfig:"OIDC_NAME_CLAIM" for:"registry up" want:"the name of a claim, such as email" desc:"The claim that names the person in the history." otherwise:"email"`
	OIDCRolesClaim       string   `envconfig:"OIDC_ROLES_CLAIM" for:"registry up" want:"the name of a claim, such as groups" desc:"The claim that HOLDFAST_OIDC_ROLES maps to roles." otherwise:"groups"`
	OIDCCollectionsClaim string   `envconfig:"OIDC_COLLECTIONS_CLAIM" for:"registry up" want:"the name of a claim" desc:"The claim that lists a depositor's collections."`
	OIDCRoles            string   `envconfig:"OIDC_ROLES" for:"registry up" want:"VALUE=ROLE, separated by semicolons, such as staff=operator; curators=depositor:maps,letters" desc:"Which value of the claim gives which role. Needed with an issuer."`

	LogLevel   slog.Level `envconfig:"LOG_LEVEL" subject:"The process" for:"registry up worker broker" want:"debug, info, warn or error" desc:"What is logged. up on a terminal begins at warn."`
	TracesURL  string     `envconfig:"TRACES_URL" for:"registry up worker" want:"an http or https address" desc:"Receiver of traces by OTLP over HTTP, such as http://collector:4318 (docs/tracing.md)." otherwise:"no traces are made"`
	CloudWatch string     `envconfig:"CLOUDWATCH" for:"registry" want:"a namespace at Amazon CloudWatch, such as Holdfast" desc:"Send each stage's backlog and number of workers there every 10 s (docs/metrics.md#at-cloudwatch). It needs a region, such as AWS_REGION has, and cloudwatch:PutMetricData." otherwise:"nothing is sent"`
	ECSCluster string     `envconfig:"ECS_CLUSTER" for:"registry" want:"the name of a cluster at Amazon ECS" desc:"Start the first worker of stages there, whose services have the names of the stages (docs/scale.md#from-zero). It needs HOLDFAST_CLOUDWATCH, ecs:DescribeServices and ecs:UpdateService." otherwise:"alarms at CloudWatch start them"`
	ECSMost    Workers    `envconfig:"ECS_MOST" for:"registry" want:"STAGE=NUMBER, separated by commas, such as download=20,scan=0" desc:"The most workers of each service at Amazon ECS. A stage with 0 is never started." otherwise:"no bound"`
	Grace      Duration   `envconfig:"GRACE" for:"registry up worker broker" want:"a duration above 0, such as 25s" desc:"How long stopping may take."`
	TempDir    string     `envconfig:"TEMP_DIR" for:"registry up worker" want:"an existing folder, such as /data/temp" desc:"Temporary files, which large bags (docs/security.md#judging) and objects of many files need: some 2 KiB a file." otherwise:"with up: temp in its folder; else the system's"`

	// The policy of all stages. Stages has the policies of single ones.
	Policy
	Stages map[registry.Stage]Policy `ignored:"true"`

	DatabaseURL     string   `envconfig:"DATABASE_URL" subject:"Database, queue and interim data" secret:"true" for:"registry up migrate" want:"sqlite:PATH or postgres://..." desc:"The Registry's database. migrate, token create --database, up and registry use it. SQLite serves one Registry, on the machine that has the file." otherwise:"with up: a SQLite file in its folder"`
	DatabaseCA      string   `envconfig:"DATABASE_CA" for:"registry up migrate" want:"certificates in PEM, or a file of them" desc:"The certificate authorities of PostgreSQL. With it the database must show a certificate of theirs for its host (sslmode=verify-full). Without it the address decides. Set it where HOLDFAST_DATABASE_URL is set."`
	NSQDAddrs       []string `envconfig:"NSQD_ADDR" for:"registry worker" want:"host:port of nsqd, or of several, separated by commas" desc:"The nsqds to publish to and listen to, directly. up uses it only for [subscriptions](feed.md) that forward to topics." otherwise:"with up: its own broker"`
	NSQLookupdAddrs []string `envconfig:"NSQLOOKUPD_ADDRS" for:"registry worker" want:"host:port of each nsqlookupd, separated by commas" desc:"The nsqlookupds that know the nsqds. registry and worker need this or HOLDFAST_NSQD_ADDR; up uses it only for subscriptions that forward to topics." otherwise:"with up: its own broker"`
	NSQAuthSecret   string   `envconfig:"NSQ_AUTH_SECRET" secret:"true" for:"registry up worker broker" want:"random text of 16 to 1024 characters (openssl rand -base64 32)" desc:"The secret that nsqds and brokers ask for; broker itself then asks for it (docs/security.md#the-broker)."`
	TopicPrefix     string   `envconfig:"TOPIC_PREFIX" for:"registry up worker" want:"letters, digits, '.', '_' and '-', at most 32" desc:"Begins the names of all topics. The same for the Registry and its workers."`
	RedisURL        string   `envconfig:"REDIS_URL" secret:"true" for:"worker" want:"redis://... or rediss://..." desc:"Redis, for interim data: redis://:PASSWORD@HOST:6379/0, with TLS rediss://... (docs/security.md#redis)." otherwise:"with up: its folder"`
	RedisCAFile     string   `envconfig:"REDIS_CA_FILE" for:"worker" want:"a PEM file of certificate authorities" desc:"Certificate authorities to trust for Redis, in addition to the machine's."`

	StagingURL             string  `envconfig:"STAGING_URL" subject:"Staging and storage" secret:"true" for:"registry worker" want:"file:///dir or s3://bucket/prefix?..." desc:"Where bytes are staged. The same for the Registry and its workers (docs/operating.md#storage-addresses)." otherwise:"with up: its folder"`
	StorageURL             string  `envconfig:"STORAGE_URL" secret:"true" for:"registry up worker" want:"file:///dir or s3://bucket/prefix?..., or several, each NAME=ADDRESS except the one called storage" desc:"Where objects are preserved; may name several storages. The same for the Registry and its workers. up adds those not called storage to its folder's (docs/operating.md#several-storages)." otherwise:"with up: its folder"`
	StagingFull            Percent `envconfig:"STAGING_FULL" for:"up worker" want:"a percentage above 0 and up to 100, such as 80" desc:"How full staging may get, in percent. The default of up, whose disk holds other things too, is 95."`
	StagingFullUnestimated Percent `envconfig:"STAGING_FULL_UNESTIMATED" for:"registry up worker" want:"a percentage above 0 and up to 100, such as 70" desc:"How full uploads and jobs of unknown size may make staging, in percent. The default of up is 90."`
	StagingReserve         Size    `envconfig:"STAGING_RESERVE" for:"registry up worker" want:"a number of bytes from 0 on, such as 5GiB; 0 reserves nothing" desc:"Bytes of its volume that staging leaves free for the database and logs." otherwise:"2 % of the volume, at least 1 GiB, at most a tenth"`
	RoomWait               Span    `envconfig:"ROOM_WAIT" for:"up provision download process restore" want:"a duration from 0 on, such as 168h; 0 sets no limit" desc:"How long an item waits for room in staging before it fails (docs/security.md#jobs-that-grow)."`

	NetAllow     Networks `envconfig:"NET_ALLOW" subject:"Fetching" for:"registry up worker" want:"networks or addresses separated by commas, such as 10.0.0.0/8,127.0.0.1" desc:"Private networks that payloads may come from and that webhooks may go to. Other private networks are refused."`
	PerHost      Count    `envconfig:"PER_HOST" for:"up fetching" want:"a whole number from 1 to 1000" desc:"The most simultaneous requests of a process to one server (scheme, host and port)." otherwise:"16"`
	HostRequests Rate     `envconfig:"HOST_REQUESTS_PER_SECOND" for:"up fetching" want:"a number above 0, such as 5 or 0.5" desc:"The most requests per second of a process to one server." otherwise:"no limit"`
	HostBytes    Bytes    `envconfig:"HOST_BYTES_PER_SECOND" for:"up fetching" want:"a number of bytes from 65536 on, such as 10000000 or 10MiB" desc:"The most bytes per second that a process fetches from one server." otherwise:"no limit"`
	LeastRate    Size     `envconfig:"LEAST_RATE" for:"up fetching" want:"a number of bytes from 0 on, such as 1024 or 1KiB; 0 sets no limit" desc:"A source that sends fewer bytes per second, averaged over a minute, counts as stalled."`
	UnknownSize  Bytes    `envconfig:"UNKNOWN_SIZE_BYTES" for:"up fetching" want:"a number of bytes from 65536 on, such as 64GiB" desc:"The largest file of unknown size."`

	UploadTokenBytes      Size  `envconfig:"UPLOAD_TOKEN_BYTES" subject:"Uploads" for:"registry up" want:"a number of bytes from 0 on, such as 200GiB; 0 sets no limit" desc:"Bytes that the uploads of one depositor's token may hold." otherwise:"half of what uploads may fill"`
	UploadTokenOpen       Quota `envconfig:"UPLOAD_TOKEN_OPEN" for:"registry up" want:"a whole number from 0 on, such as 100; 0 sets no limit" desc:"Unfinished uploads of one depositor's token."`
	UploadCollectionBytes Size  `envconfig:"UPLOAD_COLLECTION_BYTES" for:"registry up" want:"a number of bytes from 0 on, such as 1TiB; 0 sets no limit" desc:"Bytes that the uploads to one collection may hold, unless its profile says otherwise."`
	UploadCollectionOpen  Quota `envconfig:"UPLOAD_COLLECTION_OPEN" for:"registry up" want:"a whole number from 0 on, such as 200; 0 sets no limit" desc:"Unfinished uploads to one collection, unless its profile says otherwise."`
	UploadTenantBytes     Size  `envconfig:"UPLOAD_TENANT_BYTES" for:"registry up" want:"a number of bytes from 0 on, such as 4TiB; 0 sets no limit" desc:"Bytes that all uploads may hold."`
	UploadTenantOpen      Quota `envconfig:"UPLOAD_TENANT_OPEN" for:"registry up" want:"a whole number from 0 on, such as 1000; 0 sets no limit" desc:"Unfinished uploads of all."`
	UploadDays            Count `envconfig:"UPLOAD_DAYS" for:"registry up" want:"a whole number from 1 to 1000" desc:"Days after which an idle, unfinished upload is removed."`

	UnpackEntries Amount `envconfig:"UNPACK_ENTRIES" subject:"Unpacking and judging" for:"registry up worker" want:"a whole number above 0, such as 1000000" desc:"Entries of one container, folders included."`
	UnpackBytes   Bytes  `envconfig:"UNPACK_BYTES" for:"registry up worker" want:"a number of bytes from 65536 on, such as 500GiB" desc:"Bytes that one container may unpack to."`
	UnpackRatio   Amount `envconfig:"UNPACK_RATIO" for:"registry up worker" want:"a whole number above 0, such as 200" desc:"How many times its own size a container may unpack to, above 1 GiB."`
	UnpackWindow  Bytes  `envconfig:"UNPACK_WINDOW" for:"registry up worker" want:"a number of bytes from 65536 on, such as 64MiB" desc:"Memory that decompressing one container may take (xz, Zstandard)."`
	UnpackMemory  Bytes  `envconfig:"UNPACK_MEMORY" for:"up worker" want:"a number of bytes from 65536 on, such as 320MiB" desc:"Memory that decompressing all containers may take in one process (docs/security.md#the-gate)."`
	JudgeMemory   Bytes  `envconfig:"JUDGE_MEMORY" for:"registry up" want:"a number of bytes from 65536 on, such as 320MiB" desc:"Memory that judging large uploads may take in all (docs/security.md#the-gate)."`

	FixityDays     Days    `envconfig:"FIXITY_DAYS" subject:"Fixity checks and restores" for:"registry up" want:"a number of days from 0 on, such as 90; 0 turns the schedule off" desc:"Days after which every stored file is read again in every storage. The same for all Registries. 0 checks only on request."`
	FixityBytes    Bytes   `envconfig:"FIXITY_BYTES_PER_SECOND" for:"up fixity" want:"a number of bytes from 65536 on, such as 50MiB" desc:"The most bytes per second that the checks of a process read."`
	CopyBytes      Size    `envconfig:"COPY_BYTES_PER_SECOND" for:"up copy" want:"a number of bytes from 0 on, such as 50MiB; 0 sets no limit" desc:"The most bytes per second that a process reads to fill a storage (docs/operating.md#storages). Without a limit, copies between two buckets of one service are made by the service."`
	EvidenceWithin Span    `envconfig:"EVIDENCE_WITHIN" for:"registry up" want:"a duration from 0 on, such as 720h; 0 lets nothing wait" desc:"How long events of successful fixity checks may wait before they are written beside the bytes of their object (docs/evidence.md). 100 of one object wait no longer, and neither does any other event."`
	RestoreDays    Lasting `envconfig:"RESTORE_DAYS" for:"up restore" want:"a number of days above 0, such as 7" desc:"Days for which a restored version can be fetched."`

	NAAN         string `envconfig:"NAAN" subject:"Identifiers" for:"registry up worker" want:"a name assigning authority number, such as 99999" desc:"The authority number of new ARKs. The default is for tests. The same for the Registry and its workers."`
	NOIDTemplate string `envconfig:"NOID_TEMPLATE" for:"up worker" want:"a NOID template that draws at random, such as fk4{.reeeeeeeek}" desc:"The template of new ARKs."`
	EZIDURL      string `envconfig:"EZID_URL" secret:"true" for:"up process record delete" want:"an http or https address with user and password, such as https://user:password@ezid.cdlib.org" desc:"EZID, with its account, for collections that keep their names there (docs/operating.md#names-at-ezid)."`
	EZIDTarget   string `envconfig:"EZID_TARGET" for:"up process record delete" want:"an http or https address with {ark} where the ARK belongs, such as https://example.org/m/{ark}" desc:"Where a name at EZID leads." otherwise:"EZID's own page"`

	SMTPURL        string   `envconfig:"SMTP_URL" subject:"Mail" secret:"true" for:"up deliver" want:"smtp://USER:PASSWORD@HOST:PORT, which requires STARTTLS, or smtps://...; ?tls=none allows a password only to this machine" desc:"The mail server (docs/mail.md)." otherwise:"nothing is mailed"`
	MailFrom       string   `envconfig:"MAIL_FROM" for:"registry up deliver" want:"the address that mails come from, such as Holdfast <holdfast@example.org>" desc:"The sender. The Registry makes mails only if this is set." otherwise:"nothing is mailed"`
	MailURL        string   `envconfig:"MAIL_URL" for:"registry up deliver" want:"an http or https address" desc:"The address of the pages, for links in mails."`
	MailTemplates  string   `envconfig:"MAIL_TEMPLATES" for:"up worker" want:"a folder with templates (docs/mail.md)" desc:"Your own templates." otherwise:"Holdfast's own"`
	MailOperators  []string `envconfig:"MAIL_OPERATORS" for:"registry up" want:"mail addresses separated by commas" desc:"The recipients of the operators' digest."`
	MailDigest     Rhythm   `envconfig:"MAIL_DIGEST" for:"registry up" want:"a time of day in UTC, such as 06:00, or a duration of a minute or more, such as 12h" desc:"When the digest is sent."`
	MailDomains    []string `envconfig:"MAIL_DOMAINS" for:"registry up" want:"domains of mail addresses separated by commas, such as example.org, or *.example.org for all below it" desc:"Domains whose addresses every submission may name (docs/security.md#mails)." otherwise:"the submitter's own address, and those that the collection's profile has or allows"`
	MailTokenDaily Quota    `envconfig:"MAIL_TOKEN_DAILY" for:"registry up" want:"a whole number from 0 on, such as 500; 0 sets no limit" desc:"Other people's addresses that the submissions of one token may name in a day (UTC)."`

	ClamdAddr    string `envconfig:"CLAMD_ADDR" subject:"Virus scans and formats" for:"up scan process" want:"host:port or the path of a socket of clamd" desc:"clamd, for collections with virus scans (docs/operating.md#virus-scans-and-formats)." otherwise:"jobs to be scanned fail"`
	SiegfriedURL string `envconfig:"SIEGFRIED_URL" for:"up process" want:"an http or https address" desc:"siegfried (sf -serve), such as http://sf:5138." otherwise:"formats are known by media type only"`

	BackupTo    string      `envconfig:"BACKUP_TO" subject:"Backups" for:"up" want:"an existing folder on another disk, or s3://bucket/prefix?..." desc:"Back up the database, keys and settings there (docs/operating.md#back-up-and-restore). A backup has keys in it." otherwise:"no backups are made by themselves"`
	BackupEvery Duration    `envconfig:"BACKUP_EVERY" for:"up" want:"a duration above 0, such as 24h" desc:"How old the newest backup may get before another one is made."`
	BackupKeep  backup.Keep `envconfig:"BACKUP_KEEP" for:"up" want:"days and weeks, such as 7d8w" desc:"Which backups stay: the newest of each of so many days and weeks that have one."`

	SecretKey  string `envconfig:"SECRET_KEY" subject:"Keys" secret:"true" for:"registry up fetching notify deliver" want:"random text of 32 characters or more (openssl rand -base64 32); older ones after it, separated by commas" desc:"Encrypts stored credentials. The first of several keys encrypts; all of them decrypt." otherwise:"with up: secret.key in its folder"`
	ReceiptKey string `envconfig:"RECEIPT_KEY" secret:"true" for:"registry up" want:"the base64 of 32 random bytes that signs receipts (openssl rand -base64 32)" desc:"Signs deposit receipts. The same for all Registries. A new key replaces the old one at once; earlier receipts stay valid." otherwise:"with up: receipt.key in its folder"`
}

// Policy has the settings of a stage's worker. Zero stands for the worker's own default.
type Policy struct {
	MaxAttempts Count     `envconfig:"MAX_ATTEMPTS" subject:"Workers" for:"up worker" desc:"Counted failures after which an item fails and needs a person." otherwise:"5" want:"a whole number from 1 to 1000"`
	Concurrency Count     `envconfig:"CONCURRENCY" for:"up worker" desc:"Items that a worker has under way at once. Workers that wait for sources have additional spare slots (docs/security.md#slow-sources)." otherwise:"four for each processor, from 32 to 64; fixity 2" want:"a whole number from 1 to 1000"`
	Lease       LeaseTime `envconfig:"LEASE" for:"registry up worker" desc:"How long a claim outlives the last heartbeat of its process, up to 24 h; the Registry waits as long after its own outage. The same for the Registry and its workers." otherwise:"30s" want:"a duration above 0 and up to 24h, such as 30s"`
}

// Defaults, except the workers' own.
const (
	DefaultListen       = "127.0.0.1:8080"
	defaultGrace        = 25 * time.Second
	defaultNAAN         = "99999" // the NAAN for tests
	defaultNOIDTemplate = "fk4{.reeeeeeeek}"
	defaultFull         = 80
	defaultUnestimated  = 70
	upFull              = 95
	upUnestimated       = 90
	defaultFixityDays   = 90
	defaultFixityBytes  = 50 << 20
	defaultCopyBytes    = 50 << 20
	defaultEvidence     = Span(30 * 24 * time.Hour)
	defaultUploadDays   = 7
	defaultRestoreDays  = 7
	defaultDigest       = 6 * time.Hour
	defaultLeastRate    = 1 << 10
	defaultUnknownSize  = 64 << 30
	defaultRoomWait     = Span(7 * 24 * time.Hour)
	defaultTokenOpen    = 100
	defaultTenantOpen   = 1000
	defaultTokenDaily   = 500
	bySize              = -1 // a size that depends on the volume's
)

// DefaultUp is Default for `holdfast up`. Its staging lies on a disk that mostly holds other things:
// a laptop's is often three quarters full. What must stay free there is StagingReserve, in bytes.
func DefaultUp() Config {
	c := Default()
	c.StagingFull, c.StagingFullUnestimated = upFull, upUnestimated
	return c
}

// Default returns the configuration of an empty environment.
func Default() Config {
	return Config{
		HSTS:        Span(webserver.HSTS),
		SessionIdle: Duration(signin.DefaultIdle), SessionMost: Duration(signin.DefaultMost),
		Listen: DefaultListen, LogLevel: slog.LevelInfo, Grace: Duration(defaultGrace),
		StagingReserve: bySize, UploadTokenBytes: bySize, UploadTokenOpen: defaultTokenOpen, UploadTenantOpen: defaultTenantOpen,
		LeastRate: defaultLeastRate, UnknownSize: defaultUnknownSize, RoomWait: defaultRoomWait,
		StagingFull: defaultFull, StagingFullUnestimated: defaultUnestimated,
		UnpackEntries: unpack.DefaultEntries, UnpackBytes: unpack.DefaultBytes, UnpackRatio: unpack.DefaultRatio,
		UnpackWindow: unpack.DefaultWindow, JudgeMemory: gate.DefaultMemory, UnpackMemory: gate.DefaultMemory,
		FixityDays: defaultFixityDays, FixityBytes: defaultFixityBytes, CopyBytes: defaultCopyBytes, EvidenceWithin: defaultEvidence, UploadDays: defaultUploadDays, RestoreDays: defaultRestoreDays,
		BackupEvery: Duration(24 * time.Hour), BackupKeep: backup.DefaultKeep(),
		MailDigest: Rhythm{Every: 24 * time.Hour, Offset: defaultDigest}, MailTokenDaily: defaultTokenDaily,
		NAAN: defaultNAAN, NOIDTemplate: defaultNOIDTemplate,
	}
}

// Worker returns the policy of a stage's worker: the stage's own settings, else those of all
// stages.
func (c Config) Worker(s registry.Stage) base.Worker {
	own := c.Stages[s]
	return base.Worker{
		Attempts: int(first(own.MaxAttempts, c.MaxAttempts)),
		Slots:    int(first(own.Concurrency, c.Concurrency)),
		LeaseFor: time.Duration(first(own.Lease, c.Lease)),
		RoomFor:  time.Duration(c.RoomWait),
	}
}

// Unpack returns the limits on what one container may unpack to.
func (c Config) Unpack() unpack.Limits {
	return unpack.Limits{Entries: int64(c.UnpackEntries), Bytes: int64(c.UnpackBytes), Ratio: int64(c.UnpackRatio), Window: int64(c.UnpackWindow)}
}

// Receipts returns the key that signs receipts, nil if there is none. Its error names the variable;
// Load has checked it.
func (c Config) Receipts() (*receipt.Key, error) {
	if c.ReceiptKey == "" {
		return nil, nil //nolint:nilnil // nil is no key
	}
	key, err := receipt.ParseKey(c.ReceiptKey)
	if err != nil {
		return nil, fault("RECEIPT_KEY", c.ReceiptKey, nil)
	}
	return key, nil
}

// Template returns the template of new identifiers. Its error names the variable at fault; Load has
// checked it.
func (c Config) Template() (noid.Template, error) {
	t, err := noid.ParseTemplate(c.NOIDTemplate)
	if err != nil {
		return noid.Template{}, fault("NOID_TEMPLATE", c.NOIDTemplate, err)
	}
	if t.Generator != noid.Random {
		// Two processes that count would make the same names.
		return noid.Template{}, fault("NOID_TEMPLATE", c.NOIDTemplate, nil)
	}
	if t, err = t.WithNAAN(c.NAAN); err != nil {
		return noid.Template{}, fault("NAAN", c.NAAN, err)
	}
	return t, nil
}

// first returns the first value that is set.
func first[T Count | LeaseTime](values ...T) T {
	for _, v := range values {
		if v > 0 {
			return v
		}
	}
	return 0
}

// Networks are networks of addresses: those that the guard allows, or those of proxies.
type Networks []netip.Prefix

// Decode implements envconfig.Decoder.
func (n *Networks) Decode(text string) error {
	prefixes, err := source.ParseAllow(text)
	*n = prefixes
	return err
}
