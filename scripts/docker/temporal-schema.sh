#!/bin/sh
# Brings the two databases of the Temporal server to the schema of its version. Runs at every start.
set -eu

for database in temporal temporal_visibility; do
  case "$database" in
    temporal) schema=temporal ;;
    *) schema=visibility ;;
  esac
  tool="temporal-sql-tool --plugin postgres12 --ep $POSTGRES_SEEDS -p $DB_PORT -u $POSTGRES_USER --db $database"
  update="$tool update-schema -d /etc/temporal/schema/postgresql/v12/$schema/versioned"
  # A schema that is there is only brought up to date: setting it up again would begin from nothing.
  if $update; then continue; fi
  $tool create || echo "$database was made before its schema could be"
  $tool setup-schema -v 0.0
  $update
done
