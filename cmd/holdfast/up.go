package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
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
)

// defaultDir is the folder of `up`, and where client commands look for it.
const defaultDir = "./holdfast-data"

func (a *app) upCommand() *cobra.Command {
	var dir, listen string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process on one folder",
		Long: "Run Registry, queue, workers, API and pages in one process; all data lies in one folder.\n" +
			"Prints the address and a login link when ready. Ctrl-C or SIGTERM stops it; started again, it goes on.",
		Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd.Context(), dir, listen) },
	}
	cmd.Flags().StringVar(&dir, "dir", defaultDir, "the folder that everything lies in; made when it is missing")
	cmd.Flags().StringVar(&listen, "listen", "", "address of API and pages (default HOLDFAST_LISTEN or "+config.DefaultListen+")")
	return cmd
}

func (a *app) up(ctx context.Context, dir, listen string) error {
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
	begun := time.Now()
	c.Listen = listen
	n, err := node.Up(ctx, node.UpOptions{Common: a.common(c), Work: work(c, template), Dir: dir, Storages: storages(c), NSQ: nsq(c), Database: c.DatabaseURL, SecretKey: c.SecretKey, ReceiptKey: receipts})
	if err != nil {
		return fmt.Errorf("start on %s: %w", dir, err)
	}
	if err := a.greet(n.URL(), n.Token()); err != nil {
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
		Unpack: c.Unpack(), FixityEvery: c.FixityDays.Duration(), FixityBytes: int64(c.FixityBytes),
		UploadKeep:  time.Duration(c.UploadDays) * 24 * time.Hour,
		RestoreKeep: c.RestoreDays.Duration(),
		Mail:        mails(c),
	}
}

// mails says how people are told by mail.
func mails(c config.Config) node.Mail {
	m := node.Mail{
		On: c.MailFrom != "", Link: c.MailURL,
		Digest: registry.DigestRequest{To: c.MailOperators, Every: c.MailDigest.Every, Offset: c.MailDigest.Offset},
	}
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
		Allow: c.NetAllow, PerHost: int(c.PerHost), RequestsPerSecond: float64(c.HostRequests), BytesPerSecond: int(c.HostBytes), Keys: keys,
	}
}

func (a *app) loginCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "login", Short: "Print the link by which a browser is logged in to the pages", Args: needs(),
		Long: "Print the link by which a browser is logged in to the pages, as the one that this command would speak for. The link holds\n" +
			"the token: give it to nobody.",
		RunE: func(*cobra.Command, []string) error {
			at, err := a.service()
			if err != nil {
				return err
			}
			link := loginLink(strings.TrimSuffix(at.URL, "/"), at.Token)
			if a.json {
				return a.printJSON(map[string]string{"link": link})
			}
			_, err = fmt.Fprintln(a.out, link)
			return err
		},
	})
}

// greet says where it is. These two lines are what scripts wait for.
func (a *app) greet(address, token string) error {
	_, err := fmt.Fprintf(a.out, "Holdfast:   %s/\nLogin link: %s\n", address, loginLink(address, token))
	return err
}

// loginLink is the address that logs a browser in.
func loginLink(address, token string) string {
	return address + "/login?token=" + url.QueryEscape(token)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
