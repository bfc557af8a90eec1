import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

import type { Timeline } from '../protocol/timeline.ts'
import type { ChatRef } from '../shared/chat-ref.ts'
import type { Closable } from './close-on-signals.ts'
import type { AuditPage, AuditQuery } from './routes/audit-and-timeline.ts'
import type { CallCompletion } from './routes/call-completion.ts'

/** Connects an ADK agent to its clients. Mount it on any HTTP host. */
export interface Bridge extends AsyncDisposable {
  /** Handles a web `Request`, for hosts such as Hono or Next.js route handlers. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Handles a node:http request, for node:http, Express, and other hosts that use its objects. */
  readonly node: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /**
   * Handles a node:http upgrade request. Resolves to false if the path is not the bridge's socket path. The connection is then
   * untouched, and another listener must answer or close it.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<boolean>
  /**
   * Completes a long-running tool call with its final result, even hours later or after a restart. Resolves when the result is stored;
   * the model then continues in the background. Rejects with `call-completed` if the call has a final result, and with
   * `not-completable` if it waits for something else, such as an approval.
   */
  readonly completeCall: (completion: CallCompletion) => Promise<void>
  /**
   * Reads a page of the audit record of approvals, oldest entry first: all chats of all principals, or those that the query selects.
   * The entries contain the arguments and results of calls, and the messages of errors that tools threw.
   */
  readonly audit: (query?: AuditQuery) => Promise<AuditPage>
  /**
   * Reads what happened in a chat, on one time axis, and why it waits: messages, turns, model calls, tools and approvals with their
   * votes. Returns the newest `limit` turns, at most 100, default 20. Pass the `next` of a page as `before` to read earlier turns.
   */
  readonly timeline: (
    chat: ChatRef,
    page?: { readonly limit?: number; readonly before?: string },
  ) => Promise<Timeline>
  /**
   * Deletes all data of a principal: chats with their messages and files, titles, `user:` state, browser calls and, with
   * `remove-contents`, approvals and the contents of audit entries. Stops the turns and live sessions of the principal and cancels
   * pending approvals first. Waits for running tool calls, and rejects with a `StoreError` with the code `busy` if one takes longer than
   * `waitMs`; call it again then. Revoke the principal's access before, so that no new chat is created.
   */
  readonly deletePrincipal: (principalId: string, options: DeletePrincipalOptions) => Promise<void>
  /** Returns true if the bridge serves this path, for hosts that also serve other paths. */
  readonly handles: (pathname: string) => boolean
  /**
   * Refuses new work, lets running calls and turns finish, and closes the bridge. Work that still runs after
   * `drainMs` is stopped. A second call can shorten the wait: `close({ drainMs: 0 })` stops at once. Does not close a store that you
   * passed in.
   */
  readonly close: (options?: CloseOptions) => Promise<void>
  /**
   * On SIGTERM or SIGINT, closes the bridge and then the other parts in order, such as the HTTP server and the store, and ends the
   * process with code 0. Another signal, at least a second later, ends it at once with code 1.
   */
  readonly closeOnSignals: (...parts: readonly Closable[]) => void
}

/**
 * Options of `bridge.deletePrincipal()`.
 *
 * @inline
 */
interface DeletePrincipalOptions {
  /**
   * What happens to approvals and audit entries of the principal's chats. `keep` leaves them as proof of what was allowed.
   * `remove-contents` removes the approvals and the contents of the entries; their hashes stay, so that the record can be verified.
   */
  readonly audit: 'keep' | 'remove-contents'
  /** How long to wait for running calls and turns, in ms. Default 30,000. */
  readonly waitMs?: number
}

/**
 * Options of `bridge.close()`.
 *
 * @inline
 */
interface CloseOptions {
  /** How long running calls and turns may take to finish, in ms. Default: the bridge's option `drainMs`. */
  readonly drainMs?: number
}
