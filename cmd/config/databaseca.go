package config

import (
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"strings"
)

// verified returns the address of a database with the authorities, the text or file of certificates
// in PEM, whose certificate it must show. Without authorities, and for SQLite, it is the address
// itself.
func verified(address, authorities string) (string, error) {
	if authorities == "" {
		return address, nil
	}
	text := authorities
	if !strings.Contains(text, "-----BEGIN") {
		content, err := os.ReadFile(authorities)
		if err != nil {
			return "", err
		}
		text = string(content)
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(text)) {
		return "", errors.New("no certificate in PEM")
	}
	if !strings.HasPrefix(address, "postgres") {
		return address, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return address, nil //nolint:nilerr // the address is reported as a fault of its own
	}
	query := u.Query()
	if query.Get("sslmode") == "disable" {
		return "", errors.New("HOLDFAST_DATABASE_URL has sslmode=disable; remove that")
	}
	query.Set("sslmode", "verify-full")
	query.Set("sslrootcert", strings.TrimSpace(text))
	u.RawQuery = query.Encode()
	return u.String(), nil
}
