package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/format/siegfried"
	"github.com/holdfast/holdfast/mail"
	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/seal"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/webserver"
)

// defaultDir is the folder of `up`, and where client commands look for it.
const defaultDir = "./holdfast-data"

func (a *app) upCommand() *cobra.Command {
	var dir, listen, paused string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process on one folder",
		Args:  needs(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.up(cmd.Context(), dir, listen, paused) },
	}
	cmd.Flags().StringVar(&dir, "dir", defaultDir, "the folder for all data; created if missing")
	cmd.Flags().StringVar(&listen, "listen", "", "address of API and pages (default HOLDFAST_LISTEN or "+config.DefaultListen+")")
	cmd.Flags().StringVar(&paused, "paused", "", "start with everything paused, with this reason, until queue resume")
	return cmd
}

func (a *app) up(ctx context.Context, dir, listen, paused string) error {
	defaults := config.Default()
	if isTerminal(a.err) {
		defaults.LogLevel = slog.LevelWarn // a person looks on: what goes well is on the pages
	}
	c, err := config.Load(defaults)
	if err != nil {
		return err
	}
	if listen == "" {
		listen = c.Listen
	} else if !config.IsListen(listen) {
		return usage("--listen " + listen + ": it must be an address to listen on, such as " + config.DefaultListen)
	}
	template, err := c.Template()
	if err != nil {
		return err
	}
	receipts, err := c.Receipts()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(storages(c), func(s node.Storage) bool { return s.Name == registry.DefaultStorage }) {
		return usage("HOLDFAST_STORAGE_URL: up keeps objects in a storage of its own, called " + registry.DefaultStorage + ", in the folder of --dir; give the other one" +
			" another name, as in second=s3://BUCKET/PREFIX, and name it in the collections that are to use it, or leave the variable out")
	}
	begun := time.Now()
	c.Listen = listen
	n, err := node.Up(ctx, node.UpOptions{Common: a.common(c), Work: work(c, template), Web: web(c), Dir: dir, Paused: paused, Storages: storages(c), NSQ: nsq(c), Database: c.DatabaseURL, SecretKey: c.SecretKey, ReceiptKey: receipts})
	if err != nil {
		return fmt.Errorf("start on %s: %w", dir, err)
	}
	if err := a.greet(ctx, n, dir); err != nil {
		return errors.Join(err, n.Close()) //nolint:contextcheck // likewise
	}
	a.note("ready after %s; Ctrl-C stops it", time.Since(begun).Round(time.Millisecond))
	return a.attend(ctx, n)
}

// attend waits until the process is told to stop, or a part of it ends by itself, and closes it.
func (a *app) attend(ctx context.Context, n *node.Node) error {
	var failed error
	select {
	case <-ctx.Done():
	case <-n.Leaving():
	case failed = <-n.Failed():
	}
	if failed == nil {
		a.note("stopping: work under way is put down where it can be taken up again; a second signal stops at once")
	}
	return errors.Join(failed, n.Close()) //nolint:contextcheck // it drains although ctx is over, within its own grace period
}

// common is what every process is told.
func (a *app) common(c config.Config) node.Common {
	return node.Common{
		Listen: c.Listen, Version: version, Grace: time.Duration(c.Grace),
		Log: slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: c.LogLevel})),
	}
}

// work is what every process with workers is told.
func work(c config.Config, template mint.Template) node.Work {
	return node.Work{
		Sources: sources(c), Template: template, EZID: names(c), TopicPrefix: c.TopicPrefix, Policy: c.Worker,
		ClamdAddr: c.ClamdAddr, Siegfried: siegfried.Options{URL: c.SiegfriedURL},
		StagingFull: c.StagingFull.Share(), StagingFullUnestimated: c.StagingFullUnestimated.Share(),
		UnknownSize: int64(c.UnknownSize), StagingReserve: int64(c.StagingReserve),
		Uploads: upload.Limits{
			Full:       c.StagingFullUnestimated.Share(), // jobs of known size can still begin when uploads have filled it so far
			TokenBytes: int64(c.UploadTokenBytes), TokenOpen: int64(c.UploadTokenOpen),
			CollectionBytes: int64(c.UploadCollectionBytes), CollectionOpen: int64(c.UploadCollectionOpen),
			TenantBytes: int64(c.UploadTenantBytes), TenantOpen: int64(c.UploadTenantOpen),
		},
		Unpack: c.Unpack(), JudgeMemory: int64(c.JudgeMemory), UnpackMemory: int64(c.UnpackMemory), TempDir: c.TempDir, FixityEvery: c.FixityDays.Duration(), FixityBytes: int64(c.FixityBytes),
		UploadKeep:  time.Duration(c.UploadDays) * 24 * time.Hour,
		RestoreKeep: c.RestoreDays.Duration(),
		Mail:        mails(c),
	}
}

// web says how browsers are met.
func web(c config.Config) node.Web {
	roots, _ := webserver.Trust(c.CAFile) // Load has checked it
	w := node.Web{
		ACME:     webserver.ACMEOptions{Hosts: c.ACMEHosts, Email: c.ACMEEmail, Directory: c.ACMEDirectory, Cache: c.ACMECache, Roots: roots},
		Lifetime: registry.Lifetime{Idle: time.Duration(c.SessionIdle), Most: time.Duration(c.SessionMost)},
		Proxies:  webserver.Proxies(c.TrustedProxies),
		TLSCert:  c.TLSCert, TLSKey: c.TLSKey, Plain: bool(c.PlainHTTP), HSTS: time.Duration(c.HSTS),
	}
	if c.OIDCIssuer != "" {
		roles, _ := signin.ParseRoles(c.OIDCRoles) // likewise
		w.Provider = &signin.ProviderOptions{
			Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: c.OIDCClientSecret, Scopes: c.OIDCScopes, NameClaim: c.OIDCNameClaim,
			RolesClaim: c.OIDCRolesClaim, CollectionsClaim: c.OIDCCollectionsClaim, Roles: roles, Roots: roots,
		}
	}
	return w
}

// mails says how people are told by mail.
func mails(c config.Config) node.Mail {
	m := node.Mail{
		On: c.MailFrom != "", Link: c.MailURL,
		Digest: registry.DigestRequest{To: c.MailOperators, Every: c.MailDigest.Every, Offset: c.MailDigest.Offset},
	}
	m.Limits.Domains, m.Limits.TokenDaily = c.MailDomains, int64(c.MailTokenDaily)
	// Load has checked both.
	if c.SMTPURL != "" {
		m.Sender, _ = mail.New(mail.Options{URL: c.SMTPURL, From: c.MailFrom})
	}
	m.Templates, _ = mail.LoadTemplates(c.MailTemplates)
	return m
}

// names is where names are kept beside the Registry, nil when that is nowhere.
func names(c config.Config) *ezid.Client {
	if c.EZIDURL == "" {
		return nil
	}
	client, _ := ezid.New(ezid.Options{URL: c.EZIDURL, Target: c.EZIDTarget, UserAgent: "Holdfast/" + version}) // Load has checked it
	return client
}

// sources says how what depositors name is fetched.
func sources(c config.Config) node.Sources {
	keys, _ := seal.Parse(c.SecretKey) // Load has checked it
	return node.Sources{
		Allow: c.NetAllow, PerHost: int(c.PerHost), RequestsPerSecond: float64(c.HostRequests), BytesPerSecond: int(c.HostBytes), LeastRate: int(c.LeastRate), Keys: keys,
	}
}

func (a *app) loginCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "login", Short: "Print a link that signs a browser in to the pages, once", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := a.service()
			if err != nil {
				return err
			}
			c, err := clientOf(at)
			if err != nil {
				return err
			}
			defer c.Close()
			made, err := c.MakeSignInLink(cmd.Context())
			if err != nil {
				return err
			}
			link := strings.TrimSuffix(at.URL, "/") + made.Path
			if a.json {
				return a.printJSON(signInLink{link, made.ExpiresAt})
			}
			_, err = fmt.Fprintln(a.out, link)
			return err
		},
	})
}

// signInLink is what login prints for programs.
type signInLink struct {
	Link      string    `json:"link"`
	ExpiresAt time.Time `json:"expires_at"`
}

// greet says where it is, in two lines that scripts wait for. A link that makes somebody an admin is shown to a person only: what a
// service manager or a container prints is kept for everybody to read.
func (a *app) greet(ctx context.Context, n *node.Node, dir string) error {
	way := "Sign in:    holdfast login --dir " + node.ShellWord(dir)
	if isTerminal(a.out) {
		link, err := n.SignInLink(ctx)
		if err != nil {
			return err
		}
		way = "Login link: " + link + "\n            good once, within ten minutes; holdfast login --dir " + node.ShellWord(dir) + " prints another"
	}
	_, err := fmt.Fprintf(a.out, "Holdfast:   %s/\n%s\n", n.URL(), way)
	return err
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
