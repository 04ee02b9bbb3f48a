// Package configtest has a Parameter Store for tests of the configuration.
package configtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"sync/atomic"
	"testing"
)

// Store is a server of AWS Systems Manager Parameter Store.
type Store struct{ requests atomic.Int64 }

// Requests returns how many requests it has got.
func (s *Store) Requests() int64 { return s.requests.Load() }

// ParameterStore serves GetParametersByPath until the test ends, two parameters a page, and refuses
// the path /closed. It sets the variables by which the AWS SDK finds it.
func ParameterStore(t *testing.T, parameters ...[2]string) *Store {
	t.Helper()
	type parameter struct{ Name, Value string }
	type answer struct {
		Parameters []parameter
		NextToken  string `json:",omitempty"`
	}
	store := &Store{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		store.requests.Add(1)
		var in struct {
			Path, NextToken string
			WithDecryption  bool
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSSM.GetParametersByPath" || !in.WithDecryption {
			t.Errorf("request %s, %+v, %v", r.Header.Get("X-Amz-Target"), in, err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if in.Path == "/closed" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"AccessDeniedException","message":"not for you"}`)
			return
		}
		var below []parameter
		for _, p := range parameters {
			if path.Dir(p[0]) == in.Path {
				below = append(below, parameter{p[0], p[1]})
			}
		}
		var begin int
		_, _ = fmt.Sscan(in.NextToken, &begin)
		end := min(begin+2, len(below))
		a := answer{Parameters: below[begin:end]}
		if end < len(below) {
			a.NextToken = fmt.Sprint(end)
		}
		if err := json.NewEncoder(w).Encode(a); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SSM": s.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	return store
}
