import type { GrantWrite } from '../../../approvals/grant.ts'
import { chatColumns, ownerColumns } from '../../keys.ts'
import type { PostgresFeature, PostgresParts, PostgresWrites } from '../feature-tables.ts'
import type { GrantStore } from '../../tables/grants.ts'
import { grantStore, PLAN_SCOPE, toGrantRow } from '../../tables/grants.ts'
import { IN_CHAT, queryOf } from './queries.ts'

export const postgresGrants: PostgresFeature<GrantStore> = {
  create: `
  -- Decisions of people for calls that follow. max_uses, max_spent, expires_at: NULL if there is no limit.
  CREATE TABLE $schema.grants (
    seq bigint GENERATED ALWAYS AS IDENTITY,
    app_name text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    chat_id text COLLATE "C" NOT NULL,
    grant_id text COLLATE "C" NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    scope text NOT NULL,
    max_uses integer,
    max_spent bigint,
    expires_at double precision,
    body text NOT NULL,
    state text NOT NULL,
    uses integer NOT NULL,
    spent bigint NOT NULL,
    PRIMARY KEY (app_name, principal_id, grant_id)
  );
  CREATE INDEX grants_open ON $schema.grants (app_name, principal_id, tool_name) WHERE state = 'open';
  `,
  owned: ['grants'],
  ofChats: ['grants'],
  open,
  prepareWrites,
}

const OF_OWNER = 'app_name = $1 AND principal_id = $2'

/** Reads grants. */
function open({ turns: database, schema, clocks: { clock } }: PostgresParts): GrantStore {
  const query = queryOf(database)
  const select = `SELECT body, state, uses, spent FROM ${schema}.grants`
  return grantStore({
    list: query(`
      ${select} WHERE ${OF_OWNER} AND state IN ('open', 'suspended') AND (expires_at IS NULL OR expires_at > ${clock})
      ORDER BY seq DESC LIMIT 100`),
    get: query(`${select} WHERE ${OF_OWNER} AND grant_id = $3`),
    remove: query(`DELETE FROM ${schema}.grants WHERE ${OF_OWNER} AND grant_id = $3`),
    dropChat: query(`DELETE FROM ${schema}.grants WHERE ${IN_CHAT}`),
  })
}

/** Returns functions that change a grant in a transaction. They return false if a grant cannot be used. */
function prepareWrites({
  schema,
  clocks: { clock },
}: Pick<PostgresParts, 'schema' | 'clocks'>): PostgresWrites<GrantWrite> {
  const grants = `${schema}.grants`
  const replace = `
    UPDATE ${grants} SET state = 'replaced'
    WHERE ${OF_OWNER} AND tool_name = $4 AND scope = $5 AND (scope = 'person' OR chat_id = $3) AND state = 'open'`
  const replacePlan = `
    UPDATE ${grants} SET state = 'replaced' WHERE ${IN_CHAT} AND scope = '${PLAN_SCOPE}' AND state = 'open'`
  const add = `
    INSERT INTO ${grants} (app_name, principal_id, chat_id, grant_id, tool_name, scope, max_uses, max_spent, expires_at,
      body, state, uses, spent)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'open', 0, 0)`
  // Of two servers that use the same grant, the later one waits for the row, and then checks it again.
  const use = `
    UPDATE ${grants} SET uses = uses + 1, spent = spent + $4::bigint
    WHERE ${OF_OWNER} AND grant_id = $3 AND state = 'open' AND (expires_at IS NULL OR expires_at > ${clock})
      AND (max_uses IS NULL OR uses < max_uses) AND (max_spent IS NULL OR spent + $4::bigint <= max_spent)
    RETURNING 1`
  const end = `
    UPDATE ${grants} SET state = $4 WHERE ${OF_OWNER} AND grant_id = $3 AND state IN ('open', 'suspended')`
  return {
    async open(run, write) {
      const row = toGrantRow(write)
      const [appName, principalId, chatId, , toolName, scope] = row
      await run(replace, [appName, principalId, chatId, toolName, scope])
      await run(add, row)
      return true
    },
    async 'open-plan'(run, { chat, grants: added }) {
      await run(replacePlan, chatColumns(chat))
      for (const grant of added) await run(add, toGrantRow({ grant }))
      return true
    },
    use: async (run, { owner, id, amount }) =>
      (await run(use, [...ownerColumns(owner), id, amount])).length > 0,
    async end(run, { owner, id, state }) {
      await run(end, [...ownerColumns(owner), id, state])
      return true
    },
  }
}
