package role

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/format/siegfried"
	"github.com/holdfast/holdfast/mail"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/webserver"
)

// work returns the options of processes with workers.
func work(a *cli.App, c config.Config, template noid.Template) node.Work {
	return node.Work{
		Sources: sources(c), Template: template, EZID: ezidClient(a, c), TopicPrefix: c.TopicPrefix, Policy: c.Worker,
		ClamdAddr: c.ClamdAddr, Siegfried: siegfried.Options{URL: c.SiegfriedURL},
		StagingFull: c.StagingFull.Share(), StagingFullUnestimated: c.StagingFullUnestimated.Share(),
		UnknownSize: int64(c.UnknownSize), StagingReserve: int64(c.StagingReserve),
		Uploads: upload.Limits{
			Full:       c.StagingFullUnestimated.Share(), // jobs of known size can still start when uploads have reached this share
			TokenBytes: int64(c.UploadTokenBytes), TokenOpen: int64(c.UploadTokenOpen),
			CollectionBytes: int64(c.UploadCollectionBytes), CollectionOpen: int64(c.UploadCollectionOpen),
			TenantBytes: int64(c.UploadTenantBytes), TenantOpen: int64(c.UploadTenantOpen),
		},
		Unpack: c.Unpack(), JudgeMemory: int64(c.JudgeMemory), UnpackMemory: int64(c.UnpackMemory), TempDir: c.TempDir, FixityEvery: c.FixityDays.Duration(), EvidenceWithin: time.Duration(c.EvidenceWithin), FixityBytes: int64(c.FixityBytes), CopyBytes: int64(c.CopyBytes),
		UploadKeep:  time.Duration(c.UploadDays) * 24 * time.Hour,
		RestoreKeep: c.RestoreDays.Duration(),
		Mail:        mails(c),
	}
}

// web returns the options for browsers: TLS, sessions and sign-in.
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

// mails returns the options for mail.
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

// ezidClient returns the client of the EZID service, nil if none is configured.
func ezidClient(a *cli.App, c config.Config) *ezid.Client {
	if c.EZIDURL == "" {
		return nil
	}
	client, _ := ezid.New(ezid.Options{URL: c.EZIDURL, Target: c.EZIDTarget, UserAgent: "Holdfast/" + a.Version}) // Load has checked it
	return client
}

// sources returns the options for fetching from sources.
func sources(c config.Config) node.Sources {
	keys, _ := secret.Parse(c.SecretKey) // Load has checked it
	return node.Sources{
		Allow: c.NetAllow, PerHost: int(c.PerHost), RequestsPerSecond: float64(c.HostRequests), BytesPerSecond: int(c.HostBytes), LeastRate: int(c.LeastRate), Keys: keys,
	}
}

func places(c config.Config) node.Places {
	return node.Places{Staging: c.StagingURL, Storages: storages(c)}
}

func storages(c config.Config) (all []node.Storage) {
	found, _ := c.Storages() // Load has checked it
	for _, s := range found {
		all = append(all, node.Storage(s))
	}
	return all
}

func nsq(c config.Config) node.NSQ {
	return node.NSQ{Addrs: c.NSQDAddrs, LookupAddrs: c.NSQLookupdAddrs, AuthSecret: c.NSQAuthSecret}
}

// backups returns the plan of the backups of `up`. The settings that they save are read only if there
// is one: reading them may ask Parameter Store.
func backups(ctx context.Context, a *cli.App, c config.Config, dir string) (p node.BackupPlan, err error) {
	p = node.BackupPlan{To: c.BackupTo, Every: time.Duration(c.BackupEvery), Keep: c.BackupKeep}
	if p.To != "" {
		p.BackupSource, err = a.BackupSource(ctx, dir)
	}
	return p, err
}
