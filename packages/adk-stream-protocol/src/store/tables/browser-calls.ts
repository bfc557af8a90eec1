import type { FeatureDatabase } from './feature-tables.ts'
import type { Query } from './query.ts'
import { chatColumns, checkName, isStorable } from '../keys.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { FeatureReport, ReportOptions } from '../describe.ts'
import { formatTime, nameChat } from '../describe.ts'

/** A call of a browser tool that waits for the result of a client. */
export interface BrowserCall {
  readonly chat: AppChatRef
  /** The assistant message whose turn waits for the result. */
  readonly messageId: string
  readonly toolCallId: string
}

/**
 * Stores the calls that wait for a client, with their deadlines. Every method is atomic. Its effect survives a crash
 * of the process and is visible to all processes at once.
 */
export interface BrowserCallStore {
  /** Adds a call with its deadline. Does nothing if the call is already stored. */
  add(call: BrowserCall, timeoutMs: number): Promise<void>
  /** Removes calls that have a result. */
  drop(chat: AppChatRef, toolCallIds: readonly string[]): Promise<void>
  dropChat(chat: AppChatRef): Promise<void>
  /**
   * Returns calls whose deadline has passed, by the clock of the store. No other process gets them for `leaseMs`. The
   * caller removes them with `drop` after it has reported the timeout.
   */
  takeDue(filter: DueBrowserCalls): Promise<BrowserCall[]>
  /** Lists the calls that wait, of one chat or of all chats, earliest deadline first. For timelines and `doctor`. */
  list?(filter: {
    readonly chat?: AppChatRef
    readonly limit: number
  }): Promise<PendingBrowserCall[]>
}

/** A browser call with its deadline, in ms since 1970. */
export interface PendingBrowserCall extends BrowserCall {
  readonly deadline: number
}

/** Selects browser calls whose deadline has passed. */
export interface DueBrowserCalls {
  readonly appName: string
  readonly leaseMs: number
  readonly limit: number
}

export interface BrowserCallRow {
  readonly principal_id: string
  readonly chat_id: string
  readonly tool_call_id: string
  readonly message_id: string
}

interface PendingBrowserCallRow extends BrowserCallRow {
  readonly app_name: string
  readonly deadline: number
}

/** `takeDue` gets the application, the lease in ms and the limit. */
export function openBrowserCalls(
  { clock, read, write }: FeatureDatabase,
  takeDue: Query<BrowserCallRow>,
): BrowserCallStore {
  const inChat = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
  const add = write(`
    INSERT INTO $schema.browser_calls (app_name, principal_id, chat_id, tool_call_id, message_id, deadline)
    VALUES ($1, $2, $3, $4, $5, ${clock} + $6::double precision) ON CONFLICT DO NOTHING`)
  const select = 'SELECT * FROM $schema.browser_calls'
  const list = read<PendingBrowserCallRow>(`${select} ORDER BY deadline LIMIT $1`)
  const listChat = read<PendingBrowserCallRow>(
    `${select} WHERE ${inChat} ORDER BY deadline LIMIT $4`,
  )
  const remove = `DELETE FROM $schema.browser_calls WHERE ${inChat}`
  const drop = write(`${remove} AND tool_call_id = ANY ($4::text[])`)
  const dropChat = write(remove)
  return {
    async add({ chat, messageId, toolCallId }, timeoutMs) {
      const names = [checkName('toolCallId', toolCallId), checkName('messageId', messageId)]
      await add(...chatColumns(chat), ...names, timeoutMs)
    },
    async drop(chat, toolCallIds) {
      await drop(...chatColumns(chat), toolCallIds.filter(isStorable))
    },
    async dropChat(chat) {
      await dropChat(...chatColumns(chat))
    },
    async takeDue({ appName, leaseMs, limit }) {
      const rows = await takeDue(checkName('appName', appName), leaseMs, limit)
      return rows.map((row) => decodeBrowserCall(appName, row))
    },
    async list({ chat, limit }) {
      const rows = await (chat ? listChat(...chatColumns(chat), limit) : list(limit))
      return rows.map((row) => ({
        ...decodeBrowserCall(row.app_name, row),
        deadline: row.deadline,
      }))
    },
  }
}

function decodeBrowserCall(appName: string, row: BrowserCallRow): BrowserCall {
  return {
    chat: { appName, principalId: row.principal_id, chatId: row.chat_id },
    messageId: row.message_id,
    toolCallId: row.tool_call_id,
  }
}

const MAX_REPORTED = 1_000

/** Returns what `doctor` prints about calls that wait for clients. */
export async function reportBrowserCalls(
  store: BrowserCallStore,
  { appName, now, leaseMs }: ReportOptions,
): Promise<FeatureReport> {
  const all = (await store.list?.({ limit: MAX_REPORTED })) ?? []
  const calls = all.filter(({ chat }) => appName === undefined || chat.appName === appName)
  const isLate = ({ deadline }: PendingBrowserCall): boolean => deadline + leaseMs <= now
  return {
    clientCalls: calls,
    sections: [
      {
        title: 'Tools that wait for a browser',
        lines: calls.filter((call) => !isLate(call)).map(describePending),
        todo: 'the owner opens the chat in a page that has the tool.',
      },
      {
        title: 'Tools that wait for a browser after their timeout',
        lines: calls.filter(isLate).map(describePending),
        todo: 'start a server on this database. It tells the model that the browser did not respond.',
        isProblem: true,
      },
    ],
  }
}

function describePending({ chat, toolCallId, deadline }: PendingBrowserCall): string {
  return `${nameChat(chat)}: call ${toolCallId}, until ${formatTime(deadline)}`
}
