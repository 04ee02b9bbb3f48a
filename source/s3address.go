package source

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// S3Scheme is the scheme of addresses of objects in buckets: s3://BUCKET/KEY.
const S3Scheme = "s3"

// versionKey is the only query parameter that an S3 address may have.
const versionKey = "versionId"

// S3Address is a parsed S3 address.
type S3Address struct {
	Bucket    string
	Key       string // unescaped
	VersionID string // "" for the present version
}

// ParseS3 reads s3://BUCKET/KEY?versionId=ID. The key is escaped like a path (RFC 3986): %20 for a
// space, %3F for a question mark, %25 for a percent sign. Bucket names follow S3's rules, so they
// are safe as part of a host name. The error contains no part of the address.
func ParseS3(rawURL string) (S3Address, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return S3Address{}, errors.New("it cannot be parsed")
	}
	query, queryErr := url.ParseQuery(u.RawQuery)
	a := S3Address{Bucket: u.Host, Key: strings.TrimPrefix(u.Path, "/"), VersionID: query.Get(versionKey)}
	switch {
	case !strings.EqualFold(u.Scheme, S3Scheme) || u.Opaque != "":
		return S3Address{}, errors.New("it does not begin with s3://")
	case u.User != nil:
		return S3Address{}, errUserinfo
	case !IsBucket(a.Bucket):
		return S3Address{}, errors.New("it names no bucket; a bucket has 3 to 63 lower-case letters, digits, dots and hyphens")
	case a.Key == "":
		return S3Address{}, errors.New("it names no object in the bucket")
	case u.Fragment != "" || strings.HasSuffix(rawURL, "#"):
		return S3Address{}, errors.New("it has a #; write %23 if that belongs to the key")
	case queryErr != nil || u.RawQuery != "" && (len(query) != 1 || len(query[versionKey]) != 1):
		return S3Address{}, fmt.Errorf("after ? only %s=ID may stand; write %%3F if it belongs to the key", versionKey)
	}
	return a, nil
}

// IsBucket reports whether a name can be that of a bucket. An IP address cannot.
func IsBucket(name string) bool {
	const shortest, longest = 3, 63
	if len(name) < shortest || len(name) > longest || strings.Contains(name, "..") {
		return false
	}
	for i, c := range []byte(name) {
		inside := i > 0 && i < len(name)-1
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (!inside || c != '-' && c != '.') {
			return false
		}
	}
	_, err := netip.ParseAddr(name)
	return err != nil
}

// URL returns the address as a URL.
func (a S3Address) URL() *url.URL {
	u := &url.URL{Scheme: S3Scheme, Host: a.Bucket, Path: "/" + a.Key}
	if a.VersionID != "" {
		u.RawQuery = url.Values{versionKey: {a.VersionID}}.Encode()
	}
	return u
}
