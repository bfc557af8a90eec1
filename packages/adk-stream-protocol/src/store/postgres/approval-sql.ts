import type { ApprovalFilter, AuditFilter, VisibleFilter } from '../../approvals/approval-store.ts'
import { joinConditions, named, namesOf, ofChat, selectAudit, toOwnLiteral } from '../rows.ts'
import { checkName, isStorable } from '../keys.ts'
import { encodeJson } from '../stored-json.ts'
import type { Clocks } from './database.ts'
import { QUICK, tickSql } from './database.ts'
import { PAGE_EVENTS } from './session-sql.ts'
import { POSTGRES_FEATURES } from '../features.ts'

export type ApprovalSql = ReturnType<typeof approvalSql>

/** Returns all statements of the approval store. `schema` is a quoted name. */
export function approvalSql(schema: string, clocks: Clocks) {
  const { clock, leaseClock } = clocks
  const leaseNow = `(SELECT ${leaseClock})`
  const inChat = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
  const select = (condition: string) =>
    `SELECT asked, moved FROM ${schema}.approvals WHERE ${condition}`
  return {
    now: `SELECT ${clock} AS now`,
    insert: insertApproval(schema),
    replace: replaceApproval(schema, clocks),
    replaceSeveral: (count: number) => replaceSeveral(schema, count, clocks),
    wrote: `SELECT 1 FROM ${schema}.approval_audit WHERE approval_id = $1 AND version = $2 AND write_id = $3`,
    get: select('id = $1'),
    getWithTime: `
      SELECT asked, moved, now FROM (SELECT ${clock} AS now) AS clock LEFT JOIN ${schema}.approvals ON id = $1`,
    findByCall: select(`${inChat} AND tool_call_id = $4`),
    lockOpen: select(
      `${inChat} AND state IN ('requested', 'approved') ORDER BY seq FOR NO KEY UPDATE`,
    ),
    due: select(
      `state = 'requested' AND deadline <= (SELECT ${clock}) ORDER BY deadline, seq LIMIT $1`,
    ),
    unreported: select(`app_name = $1 AND unreported_since IS NOT NULL
      AND (state = 'approved' OR unreported_since <= ${leaseNow} - $2)
      AND NOT EXISTS (
        SELECT FROM ${schema}.chat_locks held LEFT JOIN ${schema}.workers USING (worker)
        WHERE held.app_name = approvals.app_name AND held.principal_id = approvals.principal_id
        AND held.chat_id = approvals.chat_id AND greatest(locked_at, beat_at) > ${leaseNow} - $2)
      AND id <> ALL ($3::text[])
      ORDER BY row_number() OVER (PARTITION BY principal_id ORDER BY seq), seq LIMIT $4`),
    stale: select(`state = 'executing' AND started_at <= ${leaseNow} - $1 AND NOT EXISTS (
        SELECT FROM ${schema}.workers WHERE workers.worker = approvals.worker AND beat_at > ${leaseNow} - $1)
      ORDER BY seq`),
    markReported: `
      WITH ${QUICK}
      UPDATE ${schema}.approvals SET unreported_since = NULL FROM quick
      WHERE ${inChat} AND tool_call_id = ANY ($4::text[]) AND state <> 'approved' AND unreported_since IS NOT NULL`,
    markAllReported: `
      UPDATE ${schema}.approvals SET unreported_since = NULL WHERE ${inChat} AND unreported_since IS NOT NULL`,
    countPending: `
      SELECT count(*) AS pending FROM (
        SELECT 1 FROM ${schema}.approvals WHERE state = 'requested' AND app_name = $1 LIMIT $2) AS counted`,
    lastSeq: `SELECT seq FROM ${schema}.audit_head`,
    readCut: `SELECT seq, hash FROM ${schema}.audit_cut`,
    auditPage: `
      SELECT seq, approval_id, version, entry, hash FROM ${schema}.approval_audit WHERE seq > $1 ORDER BY seq LIMIT 200`,
    ...leaseSql(schema, clocks),
  }
}

function leaseSql(schema: string, { leaseClock, uncappedLeaseClock = leaseClock }: Clocks) {
  const inChat = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
  const exists = (rows: string) => `EXISTS (SELECT FROM ${schema}.${rows})`
  return {
    heartbeat: `
      WITH ticked AS (${tickSql(schema, '$2::double precision')} RETURNING at),
        now AS MATERIALIZED (SELECT ${leaseClock} AS at FROM ticked),
        -- Leases are far shorter than a day, so these have expired.
        forgotten AS (DELETE FROM ${schema}.workers USING now WHERE abs(beat_at) < at - 86400000 AND worker <> $1)
      INSERT INTO ${schema}.workers (worker, beat_at) SELECT $1, at FROM now
      ON CONFLICT (worker) DO UPDATE SET beat_at = greatest(workers.beat_at, excluded.beat_at)`,
    tick: `
      ${tickSql(schema, '$1::double precision')}
      WHERE ${exists('chat_locks')} OR ${exists(`approvals WHERE state = 'executing'`)}
        OR ${exists('approvals WHERE unreported_since IS NOT NULL')}
        ${POSTGRES_FEATURES.flatMap(({ leased }) => (leased === undefined ? [] : `OR ${exists(leased)}`)).join(' ')}`,
    // A negative `beat_at` is the time at which the worker ended its lease.
    endLease: `
      INSERT INTO ${schema}.workers (worker, beat_at) SELECT $1, -(${leaseClock})
      ON CONFLICT (worker) DO UPDATE SET beat_at = excluded.beat_at`,
    hasEnded: `SELECT 1 AS ended FROM ${schema}.workers WHERE worker = $1 AND beat_at < 0`,
    lockChat: `WITH ${QUICK}, ${lockRow(schema, leaseClock)} SELECT locked FROM locked`,
    // The function reads the session as it is when the lock is held, not as it was when the statement began.
    lockAndRead: `
      WITH ${QUICK}, ${lockRow(schema, leaseClock)}
      SELECT found.* FROM locked LEFT JOIN LATERAL
        ${schema}.read_session($1, $2, $3, $8::bigint, $9::bigint * locked, ${PAGE_EVENTS}) AS found ON TRUE`,
    findLockHolder: `
      SELECT token, background, greatest(locked_at, beat_at) AS last_seen_at
      FROM ${schema}.chat_locks LEFT JOIN ${schema}.workers USING (worker) WHERE ${inChat}`,
    listLocks: `SELECT app_name, principal_id, chat_id, token FROM ${schema}.chat_locks WHERE worker = $1`,
    listLockedByOthers: `
      SELECT chat_id FROM ${schema}.chat_locks LEFT JOIN ${schema}.workers USING (worker)
      WHERE app_name = $1 AND principal_id = $2 AND worker <> $3
      AND greatest(locked_at, beat_at) > (SELECT ${leaseClock}) - $4::double precision`,
    listWorkers: `
      SELECT worker, beat_at, app_name, principal_id, chat_id, background, locked_at, ${uncappedLeaseClock} AS now
      FROM ${schema}.workers FULL JOIN ${schema}.chat_locks USING (worker) ORDER BY worker, locked_at`,
    unlockChat: `
      WITH ${QUICK} DELETE FROM ${schema}.chat_locks USING quick WHERE ${inChat} AND token = $4`,
  }
}

/** Returns the part of a statement that locks a chat. It has a row if that succeeded. */
function lockRow(schema: string, leaseClock: string): string {
  return `
    locked AS (
      INSERT INTO ${schema}.chat_locks AS held (app_name, principal_id, chat_id, worker, token, background, locked_at)
      SELECT $1, $2, $3, $4, $5, $6::boolean, ${leaseClock} FROM quick
      ON CONFLICT (app_name, principal_id, chat_id) DO UPDATE
      SET worker = excluded.worker, token = excluded.token, background = excluded.background,
        locked_at = excluded.locked_at, since = excluded.since
      WHERE held.worker = excluded.worker OR held.locked_at <= excluded.locked_at - $7::double precision AND NOT EXISTS (
        SELECT FROM ${schema}.workers
        WHERE workers.worker = held.worker AND beat_at > excluded.locked_at - $7::double precision)
      RETURNING 1 AS locked)`
}

/**
 * Returns the part of a statement that appends an audit entry if a condition holds. It updates the head of the record, so
 * writers take turns, and computes the hash as `hashEntry` does.
 */
function appendEntry(
  schema: string,
  {
    condition,
    id,
    version,
    at,
    entry,
    writeId,
  }: Record<'condition' | 'id' | 'version' | 'at' | 'entry' | 'writeId', string>,
): string {
  const content = `'[' || to_json(hash)::text || ',' || (seq + 1)::text || ',' || to_json(${id}::text)::text || ','
    || ${version}::integer::text || ',' || to_json(${entry}::text)::text || ']'`
  return `
    head AS (
      UPDATE ${schema}.audit_head SET seq = seq + 1, hash = encode(sha256(convert_to(${content}, 'UTF8')), 'hex')
      WHERE ${condition} RETURNING seq, hash),
    audit AS (
      INSERT INTO ${schema}.approval_audit (seq, approval_id, version, at, entry, hash, write_id)
      SELECT seq, ${id}, ${version}::integer, ${at}::double precision, ${entry}, hash, ${writeId} FROM head)`
}

/** The caller holds a lock of the principal, so that the quota counts all earlier requests. */
function insertApproval(schema: string): string {
  const entry = appendEntry(schema, {
    condition: 'EXISTS (SELECT FROM allowed)',
    id: '$5',
    version: '$7',
    at: '$14',
    entry: '$15',
    writeId: '$16',
  })
  return `
    WITH known AS MATERIALIZED (
      SELECT 1 FROM ${schema}.approvals
      WHERE id = $5 OR (app_name = $1 AND principal_id = $2 AND chat_id = $3 AND tool_call_id = $4)),
    pending AS MATERIALIZED (
      SELECT count(*) AS of_principal, count(*) FILTER (WHERE chat_id = $3) AS of_chat FROM ${schema}.approvals
      WHERE state = 'requested' AND app_name = $1 AND principal_id = $2),
    allowed AS MATERIALIZED (
      SELECT 1 FROM pending
      WHERE of_chat < $12::bigint AND of_principal < $13::bigint AND NOT EXISTS (SELECT FROM known)),
    ${entry},
    added AS (
      INSERT INTO ${schema}.approvals
        (seq, app_name, principal_id, chat_id, tool_call_id, id, deadline, version, state, deciders, asked, moved)
      SELECT seq, $1, $2, $3, $4, $5, $6::double precision, $7::integer, $8, $9::text[], $10, $11 FROM head
      RETURNING 1)
    SELECT EXISTS (SELECT FROM known) AS known, EXISTS (SELECT FROM added) AS added`
}

/** Returns the part of a statement that changes an approval whose version is `previous`. */
function changeApproval(schema: string, { clock, leaseClock }: Clocks, previous: string): string {
  return `
    now AS MATERIALIZED (SELECT ${leaseClock} AS at),
    changed AS (
      UPDATE ${schema}.approvals SET version = $2::integer, state = $3, worker = $4,
        started_at = CASE WHEN $4::text IS NOT NULL THEN (SELECT at FROM now) END,
        unreported_since = CASE WHEN $5::boolean THEN (SELECT at FROM now) END, moved = $6, deciders = $7::text[]
      WHERE id = $1 AND version = ${previous}
      AND ($8::double precision IS NULL OR ${clock} < $8)
      AND ($9::text IS NULL OR worker = $9 AND started_at <= (SELECT at FROM now) - $10::double precision AND NOT EXISTS (
        SELECT FROM ${schema}.workers WHERE workers.worker = $9 AND beat_at > (SELECT at FROM now) - $10::double precision))
      RETURNING 1 AS done)`
}

function replaceApproval(schema: string, clocks: Clocks): string {
  const entry = appendEntry(schema, {
    condition: 'EXISTS (SELECT FROM changed)',
    id: '$1',
    version: '$2',
    at: '$11',
    entry: '$12',
    writeId: '$13',
  })
  return `
    WITH ${changeApproval(schema, clocks, '$2::integer - 1')},
    ${entry}
    SELECT done FROM changed`
}

/**
 * Returns the statement for several transitions of one approval. Only the last one stays visible, but each has its audit
 * entry. The parameters are those of a single transition, with lists for the versions, times, entries and write ids.
 */
function replaceSeveral(schema: string, count: number, clocks: Clocks): string {
  const numbers = Array.from({ length: count }, (_, index) => index + 1)
  const links = numbers.map((number) => {
    const item = (parameter: string, type: string) => `($${parameter}::${type}[])[${number}]`
    const content = `'[' || to_json(hash)::text || ',' || (seq + 1)::text || ',' || to_json($1::text)::text || ','
      || ${item('14', 'integer')}::text || ',' || to_json(${item('12', 'text')})::text || ']'`
    return `
      link_${number} AS MATERIALIZED (
        SELECT seq + 1 AS seq, ${item('14', 'integer')} AS version, ${item('11', 'double precision')} AS at,
          ${item('12', 'text')} AS entry, encode(sha256(convert_to(${content}, 'UTF8')), 'hex') AS hash,
          ${item('13', 'text')} AS write_id
        FROM link_${number - 1})`
  })
  const rows = numbers.map(
    (number) => `SELECT seq, $1, version, at, entry, hash, write_id FROM link_${number}`,
  )
  return `
    WITH ${changeApproval(schema, clocks, '($14::integer[])[1] - 1')},
    link_0 AS MATERIALIZED (
      SELECT seq, hash FROM ${schema}.audit_head WHERE EXISTS (SELECT FROM changed) FOR UPDATE),
    ${links.join(',')},
    head AS (
      UPDATE ${schema}.audit_head SET seq = link_${count}.seq, hash = link_${count}.hash FROM link_${count}),
    audit AS (
      INSERT INTO ${schema}.approval_audit (seq, approval_id, version, at, entry, hash, write_id)
      ${rows.join(' UNION ALL ')})
    SELECT done FROM changed`
}

/** A statement with the values of its parameters. */
interface ParameterizedSql {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Numbers the parameters of a statement, which are written as `?`. */
function numberParameters(text: string, values: readonly unknown[]): ParameterizedSql {
  let number = 0
  return { text: text.replaceAll('?', () => `$${(number += 1)}`), values }
}

export function listApprovals(schema: string, filter: ApprovalFilter): ParameterizedSql {
  const { appName, principalId, chat, states, kind, waitsFor, after, limit } = filter
  const isPending = states?.length === 1 && states[0] === 'requested'
  const { conditions, values } = joinConditions<unknown>([
    named('app_name', 'appName', appName),
    named('principal_id', 'principalId', principalId),
    ofChat(chat),
    // A literal, because PostgreSQL uses a partial index only if the statement repeats its condition.
    isPending && ["state = 'requested'"],
    states !== undefined && !isPending && ['state = ANY (?::text[])', states],
    kind !== undefined && [
      `${schema}.without_escapes(asked) -> 'terms' ->> 'kind' = '${toOwnLiteral(kind)}'`,
    ],
    waitsFor !== undefined && [
      "state = 'requested' AND (principal_id = ? OR deciders && ?::text[])",
      checkName('principalId', waitsFor.id),
      namesOf([waitsFor.id], waitsFor.roles),
    ],
    after !== undefined &&
      isStorable(after) && [
        `seq > coalesce((SELECT seq FROM ${schema}.approvals WHERE id = ?), 0)`,
        after,
      ],
  ])
  const text = `SELECT asked, moved FROM ${schema}.approvals WHERE ${conditions} ORDER BY seq LIMIT ?`
  return numberParameters(text, [...values, limit])
}

/** Returns the statement for approvals that a principal may see. For each name of the principal, it reads the newest of them only. */
export function listVisible(schema: string, filter: VisibleFilter): ParameterizedSql {
  const { appName, reader, states, toolName, requester, after, limit } = filter
  const { conditions, values } = joinConditions<unknown>([
    named('reader.app_name', 'appName', appName),
    after !== undefined && [
      `reader.seq < (SELECT seq FROM ${schema}.approvals WHERE id = ?)`,
      after,
    ],
    requester !== undefined && ['reader.principal_id = ?', requester],
    toolName !== undefined && ['reader.tool = ?', withoutEscapes(encodeJson(toolName))],
    states !== undefined && ['state = ANY (?::text[])', states],
  ])
  const text = `
    SELECT asked, moved FROM ${schema}.approvals WHERE seq = ANY (ARRAY (
      SELECT newest.seq FROM unnest(?::text[]) AS names (name) CROSS JOIN LATERAL (
        SELECT reader.seq FROM ${schema}.approval_readers AS reader JOIN ${schema}.approvals USING (seq)
        WHERE reader.name = names.name AND ${conditions}
        ORDER BY reader.seq DESC LIMIT ?) AS newest))
    ORDER BY seq DESC LIMIT ?`
  const names = namesOf([reader.id], reader.roles).map(withoutEscapes)
  return numberParameters(text, [names, ...values, limit, limit])
}

/** Returns JSON text as the function `without_escapes` of the database does. */
function withoutEscapes(json: string): string {
  return json.replaceAll(/(?<!\\)((?:\\\\)*)\\u/g, '$1\\\\u')
}

/** Returns the statement for one page of the audit record. */
export function readAudit(schema: string, filter: AuditFilter, size: number): ParameterizedSql {
  const { from, to, after = 0 } = filter
  const { conditions, values } = joinConditions<unknown>([
    ['audit.seq > ?', after],
    ...selectAudit(filter),
    from !== undefined && ['audit.at >= ?', from],
    to !== undefined && ['audit.at < ?', to],
  ])
  const text = `
    SELECT audit.seq, entry FROM ${schema}.approval_audit audit JOIN ${schema}.approvals ON approvals.id = approval_id
    WHERE ${conditions} ORDER BY audit.seq LIMIT ?`
  return numberParameters(text, [...values, size])
}
