package config

import (
	"cmp"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// passwords match those in an address: in front of its host, and as a parameter.
var passwords = regexp.MustCompile(`(?:://[^:/@]*:|[?&]password=)([^/@&]+)`)

// Hide replaces each secret in a text: the values of the secret variables, and the more that are
// given. Of an address only its password is secret. Use it for texts of other programs, such as
// errors of servers.
func Hide(text string, more ...string) string {
	for _, name := range AllSecrets() {
		more = append(more, os.Getenv(name))
	}
	var hidden []string
	for _, value := range more {
		if !strings.Contains(value, "://") && !strings.HasPrefix(value, "sqlite:") {
			hidden = append(append(hidden, value), strings.Split(value, ",")...)
			continue
		}
		for _, found := range passwords.FindAllStringSubmatch(value, -1) {
			hidden = append(hidden, found[1])
			if plain, err := url.PathUnescape(found[1]); err == nil {
				hidden = append(hidden, plain)
			}
		}
	}
	// The longest first: one may contain another.
	slices.SortFunc(hidden, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range hidden {
		if secret = strings.TrimSpace(secret); secret != "" {
			text = strings.ReplaceAll(text, secret, "(secret)")
		}
	}
	return text
}
