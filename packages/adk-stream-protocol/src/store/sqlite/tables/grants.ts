import type { GrantWrite } from '../../../approvals/grant.ts'
import { chatColumns, ownerColumns } from '../../keys.ts'
import type { SqliteClocks, SqliteFeature, SqliteWrites } from '../feature-tables.ts'
import type { GrantStore } from '../../tables/grants.ts'
import { grantStore, PLAN_SCOPE, toGrantRow } from '../../tables/grants.ts'
import type { Connection } from '../connection.ts'
import { IN_CHAT, queriesOf } from './queries.ts'

export const sqliteGrants: SqliteFeature<GrantStore> = {
  create: `
  -- Decisions of people for calls that follow. max_uses, max_spent, expires_at: NULL if there is no limit.
  CREATE TABLE grants (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    scope TEXT NOT NULL,
    max_uses INTEGER,
    max_spent INTEGER,
    expires_at REAL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    uses INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    PRIMARY KEY (app_name, principal_id, grant_id)
  ) STRICT;
  CREATE INDEX grants_open ON grants (app_name, principal_id, tool_name) WHERE state = 'open';
  `,
  owned: ['grants'],
  ofChats: ['grants'],
  open,
  prepareWrites,
}

const OF_OWNER = 'app_name = ?1 AND principal_id = ?2'

/** Reads grants. */
function open(connection: Connection, { clock }: SqliteClocks): GrantStore {
  const { read, writeDurably } = queriesOf(connection)
  const select = 'SELECT body, state, uses, spent FROM grants'
  return grantStore({
    list: read(`
      ${select} WHERE ${OF_OWNER} AND state IN ('open', 'suspended') AND (expires_at IS NULL OR expires_at > ${clock})
      ORDER BY rowid DESC LIMIT 100`),
    get: read(`${select} WHERE ${OF_OWNER} AND grant_id = ?3`),
    remove: writeDurably(`DELETE FROM grants WHERE ${OF_OWNER} AND grant_id = ?3`),
    dropChat: writeDurably(`DELETE FROM grants WHERE ${IN_CHAT}`),
  })
}

/** Returns functions that change a grant in a transaction. They return false if a grant cannot be used. */
function prepareWrites(connection: Connection, { clock }: SqliteClocks): SqliteWrites<GrantWrite> {
  const replace = connection.prepare(`
    UPDATE grants SET state = 'replaced'
    WHERE ${OF_OWNER} AND tool_name = ?4 AND scope = ?5 AND (scope = 'person' OR chat_id = ?3) AND state = 'open'`)
  const replacePlan = connection.prepare(`
    UPDATE grants SET state = 'replaced' WHERE ${IN_CHAT} AND scope = '${PLAN_SCOPE}' AND state = 'open'`)
  const add = connection.prepare(`
    INSERT INTO grants (app_name, principal_id, chat_id, grant_id, tool_name, scope, max_uses, max_spent, expires_at, body,
      state, uses, spent)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', 0, 0)`)
  const use = connection.prepare(`
    UPDATE grants SET uses = uses + 1, spent = spent + ?4
    WHERE ${OF_OWNER} AND grant_id = ?3 AND state = 'open' AND (expires_at IS NULL OR expires_at > ${clock})
      AND (max_uses IS NULL OR uses < max_uses) AND (max_spent IS NULL OR spent + ?4 <= max_spent)`)
  const end = connection.prepare(`
    UPDATE grants SET state = ?4 WHERE ${OF_OWNER} AND grant_id = ?3 AND state IN ('open', 'suspended')`)
  return {
    open(write) {
      const row = toGrantRow(write)
      const [appName = '', principalId = '', chatId = '', , toolName = '', scope = ''] = row
      replace.run(appName, principalId, chatId, toolName, scope)
      add.run(...row)
      return true
    },
    'open-plan'({ chat, grants }) {
      replacePlan.run(...chatColumns(chat))
      for (const grant of grants) add.run(...toGrantRow({ grant }))
      return true
    },
    use: ({ owner, id, amount }) => use.run(...ownerColumns(owner), id, amount) > 0,
    end({ owner, id, state }) {
      end.run(...ownerColumns(owner), id, state)
      return true
    },
  }
}
