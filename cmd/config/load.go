package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/kelseyhightower/envconfig"

	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/mail"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/webserver"
)

// Fault is a value that a setting cannot have.
type Fault struct {
	Name  string // the variable
	From  string // where its value comes from, unless it is the environment
	Found string // its value; a secret is only described
	Want  string // the expected form
	Err   error  // the cause, or nil
}

// Error returns the variable, its value and the expected form.
func (f *Fault) Error() string {
	text := fmt.Sprintf("%s: found %s; expected %s", place(f.Name, f.From), f.Found, f.Want)
	if f.Err != nil {
		text += " (" + WithoutPasswords(f.Err.Error()) + ")"
	}
	return text
}

// Unwrap returns the cause, or nil.
func (f *Fault) Unwrap() error { return f.Err }

// place names a variable and where its value comes from.
func place(name, from string) string {
	if from == "" {
		return name
	}
	return from + ": " + name
}

// Load reads the configuration over the defaults. It first completes the process's environment from
// the configuration file and Parameter Store; it asks the latter for at most half a minute. The error
// joins a *Fault for each fault of a value, and the errors of the sources. Load returns the valid
// values with it, so that callers can look for further faults.
func Load(ctx context.Context, defaults Config) (Config, error) {
	c, _, err := load(ctx, defaults, func() bool { return true })
	return c, err
}

// LoadFor is Load for a command that needs only these settings, named as for [Config.Require]. It
// asks Parameter Store only if the environment and the file lack one of them: a health check every
// ten seconds, in each container, would otherwise be a request to AWS each time.
func LoadFor(ctx context.Context, defaults Config, needs ...string) (Config, error) {
	c, _, err := load(ctx, defaults, func() bool { return defaults.Require("", needs...) != nil })
	return c, err
}

// load is Load; it asks Parameter Store if ask returns true once the file is read.
func load(ctx context.Context, defaults Config, ask func() bool) (Config, origins, error) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	from, faults := gather(ctx, ask)
	c := defaults
	fields := fieldsOf(&c, Prefix)
	policies := map[registry.Stage]*Policy{}
	for _, s := range registry.Stages() {
		policies[s] = new(Policy)
		fields = append(fields, fieldsOf(policies[s], stagePrefix(s))...)
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
		faults = append(faults, f.read())
	}
	c.Unknown = unknown(known, from)
	c.Stages = map[registry.Stage]Policy{}
	for s, p := range policies {
		if *p != (Policy{}) {
			c.Stages[s] = *p
		}
	}
	faults = append(faults, c.check()...)
	if address, err := verified(c.DatabaseURL, c.DatabaseCA); err != nil {
		faults = append(faults, fault("DATABASE_CA", c.DatabaseCA, err))
	} else {
		c.DatabaseURL = address
	}
	for _, err := range faults {
		if f := new(Fault); errors.As(err, &f) {
			f.From = from[f.Name]
		}
	}
	return c, from, errors.Join(faults...)
}

// stagePrefix begins the names of a stage's own settings.
func stagePrefix(s registry.Stage) string { return Prefix + "_" + strings.ToUpper(string(s)) }

// field is one variable and the place of its value.
type field struct {
	name   string // of the variable
	prefix string
	typ    reflect.StructField
	value  reflect.Value
}

// fieldsOf returns the variables of the struct that v points to.
func fieldsOf(v any, prefix string) []field {
	var fields []field
	s := reflect.ValueOf(v).Elem()
	for i := range s.NumField() {
		t := s.Type().Field(i)
		switch {
		case t.Tag.Get("ignored") != "":
		case t.Anonymous:
			fields = append(fields, fieldsOf(s.Field(i).Addr().Interface(), prefix)...)
		default:
			fields = append(fields, field{name: prefix + "_" + t.Tag.Get("envconfig"), prefix: prefix, typ: t, value: s.Field(i)})
		}
	}
	return fields
}

// read sets the field from its variable, unless that is empty. envconfig stops at its first error
// and reads empty values, so it gets a struct of this one field.
func (f field) read() error {
	text := os.Getenv(f.name)
	if text == "" {
		return nil
	}
	one := reflect.New(reflect.StructOf([]reflect.StructField{f.typ}))
	if err := envconfig.Process(f.prefix, one.Interface()); err != nil {
		// Use the cause only: envconfig's error names Go types and repeats secrets.
		if parse := new(envconfig.ParseError); errors.As(err, &parse) {
			err = parse.Err
		}
		return f.fault(text, err)
	}
	f.value.Set(one.Elem().Field(0))
	if list, ok := f.value.Interface().([]string); ok {
		f.value.Set(reflect.ValueOf(trimmed(list)))
	}
	return nil
}

// trimmed removes the space around the elements of a list, and empty elements.
func trimmed(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (f field) fault(text string, err error) *Fault {
	found := fmt.Sprintf("%q", WithoutPasswords(text))
	if f.typ.Tag.Get("secret") != "" {
		// The cause might contain the secret.
		found, err = fmt.Sprintf("%d characters", len(text)), nil
	}
	if errors.Is(err, errForm) {
		err = nil
	}
	return &Fault{Name: f.name, Found: found, Want: f.typ.Tag.Get("want"), Err: err}
}

// fault returns the Fault of a variable of Config.
func fault(name, text string, err error) error {
	t, _ := reflect.TypeFor[Config]().FieldByNameFunc(func(field string) bool {
		t, ok := reflect.TypeFor[Config]().FieldByName(field)
		return ok && t.Tag.Get("envconfig") == name
	})
	return field{name: Prefix + "_" + name, typ: t}.fault(text, err)
}

// check validates values that depend on others or on files.
func (c Config) check() []error {
	var faults []error
	judge := func(name, text string, good bool) {
		if text != "" && !good {
			faults = append(faults, fault(name, text, nil))
		}
	}
	judge("URL", c.URL, isWeb(c.URL))
	judge("LISTEN", c.Listen, isAddr(c.Listen))
	judge("DATABASE_URL", c.DatabaseURL, isDatabase(c.DatabaseURL))
	for _, addr := range c.NSQDAddrs {
		judge("NSQD_ADDR", addr, isAddr(addr))
	}
	for _, addr := range c.NSQLookupdAddrs {
		judge("NSQLOOKUPD_ADDRS", addr, isAddr(addr))
	}
	judge("NSQ_AUTH_SECRET", c.NSQAuthSecret, len(c.NSQAuthSecret) >= 16 && len(c.NSQAuthSecret) <= 1024)
	judge("TOPIC_PREFIX", c.TopicPrefix, isTopicPrefix(c.TopicPrefix))
	judge("REDIS_URL", c.RedisURL, isURL(c.RedisURL, "redis", "rediss", "unix"))
	judge("STAGING_URL", c.StagingURL, isURL(c.StagingURL, "file", "s3"))
	if _, err := c.Storages(); err != nil {
		faults = append(faults, err)
	}
	_, err := ezid.ParseURL(c.EZIDURL)
	judge("EZID_URL", c.EZIDURL, err == nil)
	judge("EZID_TARGET", c.EZIDTarget, ezid.CheckTarget(c.EZIDTarget) == nil)
	faults = append(faults, c.checkMail()...)
	if info, err := os.Stat(c.TempDir); c.TempDir != "" && (err != nil || !info.IsDir()) {
		faults = append(faults, fault("TEMP_DIR", c.TempDir, err))
	}
	faults = append(faults, c.checkTLS()...)
	faults = append(faults, c.checkOIDC()...)
	judge("CLAMD_ADDR", c.ClamdAddr, isAddr(c.ClamdAddr) || strings.HasPrefix(c.ClamdAddr, "/"))
	judge("SIEGFRIED_URL", c.SiegfriedURL, isWeb(c.SiegfriedURL))
	judge("TRACES_URL", c.TracesURL, isWeb(c.TracesURL))
	if c.ECSCluster != "" && c.CloudWatch == "" {
		faults = append(faults, fault("CLOUDWATCH", "", errors.New("HOLDFAST_ECS_CLUSTER needs it: what else scales the services reads the figures there")))
	}
	if _, err := secret.Parse(c.SecretKey); err != nil {
		faults = append(faults, fault("SECRET_KEY", c.SecretKey, err))
	}
	if _, err := c.Receipts(); err != nil {
		faults = append(faults, err)
	}
	if _, err := c.Template(); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// checkTLS validates the settings of certificates.
func (c Config) checkTLS() []error {
	var faults []error
	if c.TLSCert != "" && c.TLSKey == "" {
		faults = append(faults, fault("TLS_KEY", "", errors.New("HOLDFAST_TLS_CERT needs it")))
	}
	if c.TLSKey != "" && c.TLSCert == "" {
		faults = append(faults, fault("TLS_CERT", "", errors.New("HOLDFAST_TLS_KEY needs it")))
	}
	if len(c.ACMEHosts) > 0 && c.TLSCert != "" {
		faults = append(faults, fault("ACME_HOSTS", strings.Join(c.ACMEHosts, ","), errors.New("HOLDFAST_TLS_CERT is set, too; set only one of them")))
	}
	if c.ACMEDirectory != "" && !isSecure(c.ACMEDirectory) {
		faults = append(faults, fault("ACME_DIRECTORY", c.ACMEDirectory, nil))
	}
	if _, err := webserver.Trust(c.CAFile); err != nil {
		faults = append(faults, fault("CA_FILE", c.CAFile, err))
	}
	if _, err := webserver.Trust(c.RedisCAFile); err != nil {
		faults = append(faults, fault("REDIS_CA_FILE", c.RedisCAFile, err))
	}
	return faults
}

// checkOIDC validates the settings of an OpenID provider.
func (c Config) checkOIDC() []error {
	var faults []error
	if c.OIDCIssuer != "" && !isSecure(c.OIDCIssuer) {
		faults = append(faults, fault("OIDC_ISSUER", c.OIDCIssuer, nil))
	}
	if _, err := signin.ParseRoles(c.OIDCRoles); err != nil {
		faults = append(faults, fault("OIDC_ROLES", c.OIDCRoles, err))
	}
	for name, value := range map[string]string{"OIDC_CLIENT_ID": c.OIDCClientID, "OIDC_ROLES": c.OIDCRoles} {
		if c.OIDCIssuer != "" && value == "" {
			faults = append(faults, fault(name, "", errors.New("HOLDFAST_OIDC_ISSUER needs it")))
		}
	}
	return faults
}

// checkMail validates the settings of mail.
func (c Config) checkMail() []error {
	var faults []error
	judge := func(name, text string, err error) {
		if text != "" && err != nil {
			faults = append(faults, fault(name, text, err))
		}
	}
	_, err := mail.ParseURL(c.SMTPURL)
	judge("SMTP_URL", c.SMTPURL, err)
	_, err = mail.ParseFrom(c.MailFrom)
	judge("MAIL_FROM", c.MailFrom, err)
	for _, a := range c.MailOperators {
		address, err := registry.MailAddress(a)
		if err == nil && address != a {
			err = errForm
		}
		judge("MAIL_OPERATORS", a, err)
	}
	for _, domain := range c.MailDomains {
		judge("MAIL_DOMAINS", domain, registry.CheckMailDomain(domain))
	}
	if c.MailURL != "" && !isWeb(c.MailURL) {
		faults = append(faults, fault("MAIL_URL", c.MailURL, nil))
	}
	_, err = mail.LoadTemplates(c.MailTemplates)
	judge("MAIL_TEMPLATES", c.MailTemplates, err)
	if c.MailFrom == "" && (c.SMTPURL != "" || len(c.MailOperators) > 0) {
		faults = append(faults, fault("MAIL_FROM", "", errors.New("mails need it")))
	}
	return faults
}

// IsListen reports whether text has the form of an address to listen on.
func IsListen(text string) bool { return isAddr(text) }

func isDatabase(text string) bool {
	path, ok := strings.CutPrefix(text, "sqlite:")
	return ok && path != "" || isURL(text, "postgres", "postgresql")
}
