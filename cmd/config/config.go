// Package config reads Holdfast's configuration from the environment, and is the only place that does (docs/cli.md,
// Configuration).
//
// It keeps true that a configuration is either wholly understood or refused: a name that begins with HOLDFAST_ and is not
// known is an error, so that a misspelt limit is never silently a default, and everything that is wrong is said at once.
// An empty value counts as not set, because that is what compose files and task definitions make of an absent one.
package config

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/receipt"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/webserver"
)

// Prefix begins every name that is ours.
const Prefix = "HOLDFAST"

// Config is the configuration (docs/cli.md). The names are those of the tags behind HOLDFAST_; what a value must
// look like is in the tag want, and secret values are never repeated in messages. The tag for says which roles use a
// setting: registry, migrate, broker, worker (every stage), fetching (the stages that fetch what others offer), or single
// stages. Every secret has it. docker/compose.yaml and the task definitions in ecs give a stage what names it or fetching.
type Config struct {
	URL   string `envconfig:"URL" want:"an http or https address, such as http://127.0.0.1:8080"`
	Token string `envconfig:"TOKEN" secret:"true" for:"worker" want:"a bearer token"`

	Listen         string   `envconfig:"LISTEN" want:"an address to listen on, such as 127.0.0.1:8080"`
	TLSCert        string   `envconfig:"TLS_CERT" want:"the PEM file of a certificate chain"`
	TLSKey         string   `envconfig:"TLS_KEY" want:"the PEM file of the certificate's key"`
	ACMEHosts      []string `envconfig:"ACME_HOSTS" want:"the names that certificates are got for, separated by commas, such as holdfast.example.org"`
	ACMEEmail      string   `envconfig:"ACME_EMAIL" want:"the mail address at which the certificate authority reaches you"`
	ACMEDirectory  string   `envconfig:"ACME_DIRECTORY" want:"the https address of the certificate authority's ACME directory"`
	ACMECache      string   `envconfig:"ACME_CACHE" want:"the folder that certificates are kept in"`
	PlainHTTP      Yes      `envconfig:"PLAIN_HTTP" want:"yes or no"`
	CAFile         string   `envconfig:"CA_FILE" want:"a PEM file of certificate authorities"`
	TrustedProxies Networks `envconfig:"TRUSTED_PROXIES" want:"networks or addresses of reverse proxies separated by commas, such as 10.0.0.0/8,127.0.0.1"`
	HSTS           Span     `envconfig:"HSTS" want:"how long browsers keep to HTTPS, such as 8760h; 0 leaves it to them"`
	SessionIdle    Duration `envconfig:"SESSION_IDLE" want:"how long a browser may stay signed in unused, such as 4h"`
	SessionMost    Duration `envconfig:"SESSION_MOST" want:"how long a browser may stay signed in at most, such as 24h"`

	OIDCIssuer           string   `envconfig:"OIDC_ISSUER" want:"the https address of an OpenID provider, such as https://login.example.org/realms/library"`
	OIDCClientID         string   `envconfig:"OIDC_CLIENT_ID" want:"what the OpenID provider calls this Holdfast"`
	OIDCClientSecret     string   `envconfig:"OIDC_CLIENT_SECRET" secret:"true" for:"registry" want:"the client's secret at the OpenID provider"`
	OIDCScopes           []string `envconfig:"OIDC_SCOPES" want:"scopes to ask for beside openid, separated by commas, such as email,profile,groups"`
	OIDCNameClaim        string   `envconfig:"OIDC_NAME_CLAIM" want:"the claim that acts are recorded under, such as email"`
	OIDCRolesClaim       string   `envconfig:"OIDC_ROLES_CLAIM" want:"the claim whose values HOLDFAST_OIDC_ROLES is about, such as groups"`
	OIDCCollectionsClaim string   `envconfig:"OIDC_COLLECTIONS_CLAIM" want:"the claim whose values are the collections of depositors"`
	OIDCRoles            string   `envconfig:"OIDC_ROLES" want:"VALUE=ROLE, separated by semicolons, such as staff=operator; curators=depositor:maps,letters"`

	LogLevel slog.Level `envconfig:"LOG_LEVEL" want:"debug, info, warn or error"`
	Grace    Duration   `envconfig:"GRACE" want:"a duration above 0, such as 25s"`

	DatabaseURL     string   `envconfig:"DATABASE_URL" secret:"true" for:"registry migrate" want:"sqlite:PATH or postgres://..."`
	NSQDAddrs       []string `envconfig:"NSQD_ADDR" want:"host:port of nsqd, or of several, separated by commas"`
	NSQLookupdAddrs []string `envconfig:"NSQLOOKUPD_ADDRS" want:"host:port of each nsqlookupd, separated by commas"`
	NSQAuthSecret   string   `envconfig:"NSQ_AUTH_SECRET" secret:"true" for:"registry worker broker" want:"random text of 16 to 1024 characters (openssl rand -base64 32)"`
	TopicPrefix     string   `envconfig:"TOPIC_PREFIX" want:"letters, digits, '.', '_' and '-', at most 32"`
	RedisURL        string   `envconfig:"REDIS_URL" secret:"true" for:"worker" want:"redis://... or rediss://..."`
	RedisCAFile     string   `envconfig:"REDIS_CA_FILE" want:"a PEM file of certificate authorities"`
	StagingURL      string   `envconfig:"STAGING_URL" secret:"true" for:"registry worker" want:"file:///dir or s3://bucket/prefix?..."`
	StorageURL      string   `envconfig:"STORAGE_URL" secret:"true" for:"registry worker" want:"file:///dir or s3://bucket/prefix?..., or several, each NAME=ADDRESS but the one called storage"`

	NetAllow               Networks `envconfig:"NET_ALLOW" want:"networks or addresses separated by commas, such as 10.0.0.0/8,127.0.0.1"`
	PerHost                Count    `envconfig:"PER_HOST" for:"fetching" want:"a whole number from 1 to 1000"`
	HostRequests           Rate     `envconfig:"HOST_REQUESTS_PER_SECOND" for:"fetching" want:"a number above 0, such as 5 or 0.5"`
	HostBytes              Bytes    `envconfig:"HOST_BYTES_PER_SECOND" for:"fetching" want:"a number of bytes from 65536 on, such as 10000000 or 10MiB"`
	LeastRate              Size     `envconfig:"LEAST_RATE" for:"fetching" want:"a number of bytes from 0 on, such as 1024 or 1KiB; 0 sets no limit"`
	UnknownSize            Bytes    `envconfig:"UNKNOWN_SIZE_BYTES" for:"fetching" want:"a number of bytes from 65536 on, such as 64GiB"`
	RoomWait               Span     `envconfig:"ROOM_WAIT" for:"provision download process restore" want:"how long an item may wait for room, such as 168h; 0 sets no limit"`
	StagingFull            Percent  `envconfig:"STAGING_FULL" want:"a percentage above 0 and up to 100, such as 80"`
	StagingFullUnestimated Percent  `envconfig:"STAGING_FULL_UNESTIMATED" want:"a percentage above 0 and up to 100, such as 70"`

	StagingReserve Size `envconfig:"STAGING_RESERVE" want:"a number of bytes from 0 on, such as 5GiB; 0 reserves nothing"`

	UploadTokenBytes      Size  `envconfig:"UPLOAD_TOKEN_BYTES" want:"a number of bytes from 0 on, such as 200GiB; 0 sets no limit"`
	UploadTokenOpen       Quota `envconfig:"UPLOAD_TOKEN_OPEN" want:"a whole number from 0 on, such as 100; 0 sets no limit"`
	UploadCollectionBytes Size  `envconfig:"UPLOAD_COLLECTION_BYTES" want:"a number of bytes from 0 on, such as 1TiB; 0 sets no limit"`
	UploadCollectionOpen  Quota `envconfig:"UPLOAD_COLLECTION_OPEN" want:"a whole number from 0 on, such as 200; 0 sets no limit"`
	UploadTenantBytes     Size  `envconfig:"UPLOAD_TENANT_BYTES" want:"a number of bytes from 0 on, such as 4TiB; 0 sets no limit"`
	UploadTenantOpen      Quota `envconfig:"UPLOAD_TENANT_OPEN" want:"a whole number from 0 on, such as 1000; 0 sets no limit"`

	UnpackEntries Amount `envconfig:"UNPACK_ENTRIES" want:"a whole number above 0, such as 1000000"`
	UnpackBytes   Bytes  `envconfig:"UNPACK_BYTES" want:"a number of bytes from 65536 on, such as 500GiB"`
	UnpackRatio   Amount `envconfig:"UNPACK_RATIO" want:"a whole number above 0, such as 200"`
	UnpackWindow  Bytes  `envconfig:"UNPACK_WINDOW" want:"a number of bytes from 65536 on, such as 64MiB"`
	JudgeMemory   Bytes  `envconfig:"JUDGE_MEMORY" want:"a number of bytes from 65536 on, such as 320MiB"`
	TempDir       string `envconfig:"TEMP_DIR" want:"an existing folder, such as /data/temp"`
	UnpackMemory  Bytes  `envconfig:"UNPACK_MEMORY" want:"a number of bytes from 65536 on, such as 320MiB"`

	FixityDays  Days  `envconfig:"FIXITY_DAYS" want:"a number of days from 0 on, such as 90; 0 turns the schedule off"`
	FixityBytes Bytes `envconfig:"FIXITY_BYTES_PER_SECOND" for:"fixity" want:"a number of bytes from 65536 on, such as 50MiB"`

	UploadDays Count `envconfig:"UPLOAD_DAYS" want:"a whole number from 1 to 1000"`

	RestoreDays Lasting `envconfig:"RESTORE_DAYS" for:"restore" want:"a number of days above 0, such as 7"`

	NAAN         string `envconfig:"NAAN" want:"a name assigning authority number, such as 99999"`
	NOIDTemplate string `envconfig:"NOID_TEMPLATE" want:"a NOID template that draws at random, such as fk4{.reeeeeeeek}"`
	EZIDURL      string `envconfig:"EZID_URL" secret:"true" for:"process record delete" want:"an http or https address with user and password, such as https://user:password@ezid.cdlib.org"`
	EZIDTarget   string `envconfig:"EZID_TARGET" for:"process record delete" want:"an http or https address with {ark} where the ARK belongs, such as https://example.org/m/{ark}"`
	SMTPURL      string `envconfig:"SMTP_URL" secret:"true" for:"deliver" want:"smtp://USER:PASSWORD@HOST:PORT, which insists on STARTTLS, or smtps://...; with ?tls=none a password goes to this machine only"`
	MailFrom     string `envconfig:"MAIL_FROM" for:"registry deliver" want:"the address that mails come from, such as Holdfast <holdfast@example.org>"`
	MailURL      string `envconfig:"MAIL_URL" for:"registry deliver" want:"the http or https address at which people reach the pages"`

	MailTemplates  string   `envconfig:"MAIL_TEMPLATES" want:"a folder with templates that take the place of ours (docs/mail.md)"`
	MailDomains    []string `envconfig:"MAIL_DOMAINS" want:"domains of mail addresses separated by commas, such as example.org, or *.example.org for all below it"`
	MailTokenDaily Quota    `envconfig:"MAIL_TOKEN_DAILY" want:"a whole number from 0 on, such as 500; 0 sets no limit"`

	MailOperators []string `envconfig:"MAIL_OPERATORS" want:"mail addresses separated by commas"`
	MailDigest    Rhythm   `envconfig:"MAIL_DIGEST" want:"a time of day in UTC, such as 06:00, or a duration of a minute or more, such as 12h"`

	ClamdAddr    string `envconfig:"CLAMD_ADDR" for:"scan process" want:"host:port or the path of a socket of clamd"`
	SiegfriedURL string `envconfig:"SIEGFRIED_URL" for:"process" want:"an http or https address"`
	SecretKey    string `envconfig:"SECRET_KEY" secret:"true" for:"registry fetching notify deliver" want:"random text of 32 characters or more that seals credentials at rest (openssl rand -base64 32); older ones after it, separated by commas"`
	ReceiptKey   string `envconfig:"RECEIPT_KEY" secret:"true" for:"registry" want:"the base64 of 32 random bytes that signs receipts (openssl rand -base64 32)"`

	// Of all stages; Stages has what is said of one.
	Policy
	Stages map[registry.Stage]Policy `ignored:"true"`
}

// Policy is how a stage's worker works; zero means the worker's own default.
type Policy struct {
	MaxAttempts Count    `envconfig:"MAX_ATTEMPTS" want:"a whole number from 1 to 1000"`
	Concurrency Count    `envconfig:"CONCURRENCY" want:"a whole number from 1 to 1000"`
	Lease       Duration `envconfig:"LEASE" want:"a duration above 0, such as 30s"`
}

// The defaults that are not a worker's own.
const (
	DefaultListen       = "127.0.0.1:8080"
	defaultGrace        = 25 * time.Second
	defaultNAAN         = "99999" // ARK's NAAN for tests
	defaultNOIDTemplate = "fk4{.reeeeeeeek}"
	defaultFull         = 80
	defaultUnestimated  = 70
	defaultFixityDays   = 90
	defaultFixityBytes  = 50 << 20
	defaultUploadDays   = 7
	defaultRestoreDays  = 7
	defaultDigest       = 6 * time.Hour
	defaultLeastRate    = 1 << 10
	defaultUnknownSize  = 64 << 30
	defaultRoomWait     = Span(7 * 24 * time.Hour)
	defaultTokenOpen    = 100
	defaultTenantOpen   = 1000
	defaultTokenDaily   = 500
	byItself            = -1 // a size that follows from that of the volume
)

// Default returns the configuration of an empty environment.
func Default() Config {
	return Config{
		HSTS:        Span(webserver.HSTS),
		SessionIdle: Duration(signin.DefaultIdle), SessionMost: Duration(signin.DefaultMost),
		Listen: DefaultListen, LogLevel: slog.LevelInfo, Grace: Duration(defaultGrace),
		StagingReserve: byItself, UploadTokenBytes: byItself, UploadTokenOpen: defaultTokenOpen, UploadTenantOpen: defaultTenantOpen,
		LeastRate: defaultLeastRate, UnknownSize: defaultUnknownSize, RoomWait: defaultRoomWait,
		StagingFull: defaultFull, StagingFullUnestimated: defaultUnestimated,
		UnpackEntries: unpack.DefaultEntries, UnpackBytes: unpack.DefaultBytes, UnpackRatio: unpack.DefaultRatio,
		UnpackWindow: unpack.DefaultWindow, JudgeMemory: gate.DefaultMemory, UnpackMemory: gate.DefaultMemory,
		FixityDays: defaultFixityDays, FixityBytes: defaultFixityBytes, UploadDays: defaultUploadDays, RestoreDays: defaultRestoreDays,
		MailDigest: Rhythm{Every: 24 * time.Hour, Offset: defaultDigest}, MailTokenDaily: defaultTokenDaily,
		NAAN: defaultNAAN, NOIDTemplate: defaultNOIDTemplate,
	}
}

// Worker returns the policy of a stage's worker: the stage's own value, else that of all stages, else none.
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

// Receipts returns the key that signs receipts; nil when there is none. The error names the variable; Load has checked it.
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

// Template returns the template that identifiers are minted from. The error names the variable at fault; Load has
// checked it.
func (c Config) Template() (mint.Template, error) {
	t, err := mint.ParseTemplate(c.NOIDTemplate)
	if err != nil {
		return mint.Template{}, fault("NOID_TEMPLATE", c.NOIDTemplate, err)
	}
	if t.Generator != mint.Random {
		// Two processes that count would both begin at the first name.
		return mint.Template{}, fault("NOID_TEMPLATE", c.NOIDTemplate, nil)
	}
	if t, err = t.WithNAAN(c.NAAN); err != nil {
		return mint.Template{}, fault("NAAN", c.NAAN, err)
	}
	return t, nil
}

// first returns the first value that is set.
func first[T Count | Duration](values ...T) T {
	for _, v := range values {
		if v > 0 {
			return v
		}
	}
	return 0
}

// Networks are networks of addresses: what the guard against requests to inner networks lets pass, or where proxies are.
type Networks []netip.Prefix

// Decode implements envconfig.Decoder.
func (n *Networks) Decode(text string) error {
	prefixes, err := source.ParseAllow(text)
	*n = prefixes
	return err
}
