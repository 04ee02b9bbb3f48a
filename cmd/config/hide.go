package config

import (
	"cmp"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// passwords match those in an address: between a user and a host, and as a parameter. A port is none.
var passwords = regexp.MustCompile(`(://[^:/@\s]*:)([^/@\s]+)@|([?&]password=)([^/@&\s]+)`)

// Hidden stands for a secret. hiddenPassword stands for the password within an address, as in errors
// of Go's own packages.
const (
	Hidden         = "(secret)"
	hiddenPassword = "xxxxx"
)

// WithoutPasswords replaces the passwords within addresses in a text.
func WithoutPasswords(text string) string {
	return passwords.ReplaceAllStringFunc(text, func(found string) string {
		m := passwords.FindStringSubmatch(found)
		if m[2] != "" {
			return m[1] + hiddenPassword + "@"
		}
		return m[3] + hiddenPassword
	})
}

// Hide replaces each secret in a text: the passwords within addresses, the values of the secret
// variables, and the more that are given. Of an address only its password is secret. Use it for texts of other programs, such as errors of servers.
func Hide(text string, more ...string) string {
	for _, name := range AllSecrets() {
		more = append(more, os.Getenv(name))
	}
	var secrets []string
	for _, value := range more {
		if !strings.Contains(value, "://") && !strings.HasPrefix(value, "sqlite:") {
			secrets = append(append(secrets, value), strings.Split(value, ",")...)
			continue
		}
		for _, found := range passwords.FindAllStringSubmatch(value, -1) {
			password := found[2] + found[4]
			secrets = append(secrets, password)
			if plain, err := url.PathUnescape(password); err == nil {
				secrets = append(secrets, plain)
			}
		}
	}
	text = WithoutPasswords(text)
	// The longest first: one may contain another.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range secrets {
		if secret = strings.TrimSpace(secret); secret != "" {
			text = strings.ReplaceAll(text, secret, Hidden)
		}
	}
	return text
}
