package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/clamd"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/format/siegfried"
	"github.com/holdfast/holdfast/interim/redis"
	"github.com/holdfast/holdfast/mail"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/web/webserver"
)

// checkDatabase reads the state of the Registry's database.
func checkDatabase(ctx context.Context, s *site, r *report) {
	address := s.database()
	if address == "" {
		return
	}
	before := s.now()
	e, err := sqldb.Examine(ctx, address)
	after := s.now()
	if errors.Is(err, fs.ErrNotExist) {
		r.fault(err.Error(), "start holdfast up or holdfast migrate, which make it, or correct the address")
		return
	} else if err != nil {
		r.failed(err, "HOLDFAST_DATABASE_URL", "start it, or correct HOLDFAST_DATABASE_URL")
		return
	}
	if e.SchemaErr != nil {
		fix := "back the database up first (\"Upgrade\" in docs/operating.md)"
		if s.role == roleUp && e.Dialect == sqldb.SQLite {
			fix = "back the database up, then start the newest holdfast up that you use: it migrates SQLite by itself"
		}
		r.fault(e.SchemaErr.Error(), fix)
	}
	judgeDatabase(r, e)
	if !e.Now.IsZero() {
		clock := &report{about: "its clock"}
		compareClock(clock, before, e.Now, after, 0)
		r.list = append(r.list, clock.list...)
	}
	if len(r.list) == 0 || r.list[0].About != "" {
		r.list = append([]Finding{{Result: OK, Found: fmt.Sprintf("%s %s, schema version %d, %s", e.Dialect, e.Server, e.Schema, terminal.SizeText(e.Bytes))}}, r.list...)
	}
}

// judgeDatabase reports settings with which a commit may be lost.
func judgeDatabase(r *report, e sqldb.Examination) {
	for _, rule := range []struct {
		setting, bad string
		result       Result
		why, fix     string
	}{
		{"fsync", "off", Fault, "a loss of power may destroy the database", "set fsync = on in postgresql.conf"},
		{"full_page_writes", "off", Warning, "a loss of power may destroy pages, unless the file system prevents it", "set full_page_writes = on in postgresql.conf"},
		{"synchronous_commit", "off", Fault, "a loss of power takes back what was answered as done", "set synchronous_commit = on for this database and user"},
		{"transaction_read_only", "on", Fault, "it takes no writes: it is a standby, or was set to read only", "name the primary in HOLDFAST_DATABASE_URL"},
		{"journal_mode", "delete", Warning, "readers and the writer block each other", "start holdfast up or registry: they set WAL; its folder must be on a local disk"},
	} {
		if got := e.Settings[rule.setting]; got == rule.bad {
			r.add(rule.result, fmt.Sprintf("%s is %s: %s", rule.setting, got, rule.why), rule.fix, exit.Failed)
		}
	}
}

const fixQueue = "start nsqd (or holdfast broker) there, or correct HOLDFAST_NSQD_ADDR (its TCP port, usually 4150) or HOLDFAST_NSQLOOKUPD_ADDRS (its HTTP port, usually 4161); if it requires a secret, set HOLDFAST_NSQ_AUTH_SECRET"

// checkQueue asks each nsqlookupd and nsqd. up has its own broker, which no other process can ask.
func checkQueue(ctx context.Context, s *site, r *report) {
	c := s.config
	nodes := map[string]bool{}
	for _, addr := range c.NSQDAddrs {
		nodes[addr] = true
	}
	for _, lookup := range c.NSQLookupdAddrs {
		r.about = "nsqlookupd " + lookup
		found, err := queue.Nodes(ctx, lookup)
		if err != nil {
			r.failed(err, "HOLDFAST_NSQD_ADDR or HOLDFAST_NSQLOOKUPD_ADDRS", fixQueue)
			continue
		}
		for _, addr := range found {
			nodes[addr] = true
		}
		if len(found) == 0 {
			r.fault("it knows no nsqd", "start nsqd with --lookupd-tcp-address of this nsqlookupd")
			continue
		}
		missing, err := missingTopics(ctx, lookup, c.TopicPrefix)
		switch {
		case err != nil:
			r.failed(err, "HOLDFAST_NSQD_ADDR or HOLDFAST_NSQLOOKUPD_ADDRS", fixQueue)
		case len(missing) > 0:
			r.warn("no nsqd has the topics "+strings.Join(missing, ", ")+": nobody published to them or listens to them yet", "start the Registry and a worker for each stage, with the same HOLDFAST_TOPIC_PREFIX")
		default:
			r.ok("it knows %s and all topics of deposits", terminal.Plural(int64(len(found)), "nsqd", "nsqds"))
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		r.about = "nsqd " + addr
		server, err := queue.Inspect(ctx, addr, c.NSQAuthSecret)
		switch {
		case errors.Is(err, queue.ErrRefused):
			r.fault(err.Error(), fixQueue)
		case err != nil:
			r.failed(err, "HOLDFAST_NSQD_ADDR or HOLDFAST_NSQLOOKUPD_ADDRS", fixQueue)
		case server.MaxMsgTimeout < queue.DefaultMsgTimeout:
			r.fault(fmt.Sprintf("it has --max-msg-timeout=%s", server.MaxMsgTimeout), fmt.Sprintf("start it with %s at least", queue.DefaultMsgTimeout))
		default:
			r.ok("version %s, --max-msg-timeout=%s", server.Version, server.MaxMsgTimeout)
		}
	}
}

// missingTopics returns the topics of the stages of deposits that no nsqd has.
func missingTopics(ctx context.Context, lookup, prefix string) (missing []string, err error) {
	for _, route := range registry.Routes() {
		if !route.Deposit || route.Functions {
			continue
		}
		for _, step := range route.Steps {
			if step.Optional {
				continue
			}
			topic, err := queue.Topic(prefix, string(route.Action), string(step.Stage))
			if err != nil {
				return nil, err
			}
			nodes, err := queue.TopicNodes(ctx, lookup, topic)
			if err != nil {
				return nil, err
			}
			if len(nodes) == 0 {
				missing = append(missing, topic)
			}
		}
	}
	return missing, nil
}

// checkRedis asks Redis whether it keeps interim data.
func checkRedis(ctx context.Context, s *site, r *report) {
	if s.config.RedisURL == "" {
		return
	}
	const fix = "start it, or correct HOLDFAST_REDIS_URL"
	roots, err := webserver.Trust(s.config.RedisCAFile)
	if err != nil {
		r.skip("%s", err)
		return
	}
	store, err := redis.Open(s.config.RedisURL, roots)
	if err != nil {
		r.fault(err.Error(), fix)
		return
	}
	defer func() { _ = store.Close() }() // nothing was written
	version, err := store.Version(ctx)
	if err != nil {
		r.failed(err, "HOLDFAST_REDIS_URL", fix)
		return
	}
	if isOld(version) {
		r.fault("it is version "+version+", and Holdfast needs 6.2", "install a newer one")
	}
	for _, err := range parts(store.Check(ctx)) {
		if w := new(redis.Warning); errors.As(err, &w) {
			r.warn(fmt.Sprintf("%s is %s", w.Setting, w.Value), w.Consequence)
		} else {
			r.failed(err, "HOLDFAST_REDIS_URL", fix)
		}
	}
	if len(r.list) == 0 {
		r.ok("version %s, appendonly yes, maxmemory-policy noeviction", version)
	}
}

// isOld reports whether a version of Redis is older than 6.2.
func isOld(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && (major < 6 || major == 6 && minor < 2)
}

// checkMail connects to the mail server, and sends a mail only if asked to.
func checkMail(ctx context.Context, s *site, r *report) {
	c := s.config
	if c.SMTPURL == "" {
		if s.mailTo != "" {
			r.fault("--mail: HOLDFAST_SMTP_URL is not set", "set it and HOLDFAST_MAIL_FROM")
		}
		return
	}
	sender, err := mail.New(mail.Options{URL: c.SMTPURL, From: c.MailFrom, RootCAs: s.mailRoots})
	if err != nil {
		r.skip("its settings are wrong") // checkSettings says how
		return
	}
	r.about = sender.Server()
	const fix = "correct HOLDFAST_SMTP_URL, or mend the server"
	if s.mailTo == "" {
		if err := sender.Check(ctx); err != nil {
			r.failed(err, "HOLDFAST_SMTP_URL", fix)
			return
		}
		r.ok("connected and authenticated as a mail would be; nothing was sent (--mail ADDRESS sends one)")
		return
	}
	to, err := registry.MailAddress(s.mailTo)
	if err != nil || to != s.mailTo {
		r.add(Fault, "--mail "+s.mailTo+": not a mail address", "give it without a name: --mail someone@example.org", exit.Usage)
		return
	}
	text := "This is a test mail that holdfast doctor sent. Nothing needs to be done.\n"
	err = sender.Send(ctx, mail.Message{ID: uuid.NewString(), To: to, At: s.now(), Content: mail.Content{Subject: "Holdfast: test mail", Text: text, HTML: "<p>" + text + "</p>"}})
	if err != nil {
		r.failed(err, "HOLDFAST_SMTP_URL", fix)
		return
	}
	r.ok("it accepted a test mail to %s; see whether it arrives", to)
}

// checkClamd asks clamd for its version, and whether it reports what it does not scan.
func checkClamd(ctx context.Context, s *site, r *report) {
	addr := s.config.ClamdAddr
	if addr == "" || !s.does(registry.Scan, registry.Process) {
		return
	}
	r.about = addr
	engine, err := clamd.New(addr).Engine(ctx)
	switch {
	case errors.Is(err, clamd.ErrSilent):
		r.fault(err.Error(), "set AlertExceedsMax yes in clamd.conf")
	case err != nil:
		r.failed(err, "HOLDFAST_CLAMD_ADDR", "start clamd, or correct HOLDFAST_CLAMD_ADDR")
	default:
		judgeSignatures(r, engine, s.now())
	}
}

// signaturesOld is the age from which virus signatures are warned of.
const signaturesOld = 7 * 24 * time.Hour

// judgeSignatures judges clamd's text "ClamAV 1.4.6/27500/Sat Jan  3 08:25:40 2026".
func judgeSignatures(r *report, engine string, now time.Time) {
	parts := strings.SplitN(engine, "/", 3)
	if len(parts) < 3 {
		r.ok("%s", engine) // without signatures of freshclam
		return
	}
	made, err := time.Parse("Mon Jan _2 15:04:05 2006", strings.TrimSpace(parts[2]))
	if err == nil && now.Sub(made) > signaturesOld {
		r.warn("its signatures are of "+made.Format(time.DateOnly), "let freshclam renew them daily")
		return
	}
	r.ok("%s", engine)
}

// checkSiegfried has a small file identified.
func checkSiegfried(ctx context.Context, s *site, r *report) {
	address := s.config.SiegfriedURL
	if address == "" || !s.does(registry.Process) {
		return
	}
	r.about = address
	const fix = "start sf -serve there, or correct HOLDFAST_SIEGFRIED_URL"
	client, err := siegfried.New(siegfried.Options{URL: address})
	if err != nil {
		r.fault(err.Error(), fix)
		return
	}
	defer func() { _ = client.Close() }()
	content := []byte("%PDF-1.4\n%%EOF\n")
	answer, err := client.Identify(ctx, format.File{Name: "doctor.pdf", Size: int64(len(content)), Read: func(_ context.Context, fn func(io.Reader) error) error {
		return fn(bytes.NewReader(content))
	}})
	if err != nil {
		r.failed(err, "HOLDFAST_SIEGFRIED_URL", fix)
		return
	}
	r.ok("%s answers", answer.Agent)
}

// checkEZID logs in.
func checkEZID(ctx context.Context, s *site, r *report) {
	c := s.config
	if c.EZIDURL == "" || !s.does(registry.Process, registry.Record, registry.Delete) {
		return
	}
	client, err := ezid.New(ezid.Options{URL: c.EZIDURL, Target: c.EZIDTarget, UserAgent: "Holdfast/" + s.version})
	if err != nil {
		r.skip("its settings are wrong") // checkSettings says how
		return
	}
	defer client.Close()
	r.about = client.Host()
	err = client.Login(ctx)
	var answered *ezid.Error
	switch {
	case errors.As(err, &answered) && answered.Kind == ezid.Denied:
		r.fault(err.Error(), "correct user and password in HOLDFAST_EZID_URL")
	case err != nil:
		r.failed(err, "HOLDFAST_EZID_URL", "see whether EZID works, or correct HOLDFAST_EZID_URL")
	default:
		r.ok("it accepts the account; nothing was changed")
	}
}
