import type { MessagePort } from 'node:worker_threads'

/** What the thread with the loader hooks receives. */
export interface HookData {
  /** The URL of the agent's file. */
  readonly entry: string
  readonly port: MessagePort
}

/** What the loader hooks report. */
export type HookMessage =
  | { readonly type: 'file'; readonly file: string }
  | { readonly type: 'adk'; readonly folder: string; readonly importer: string }
  | { readonly type: 'no-typescript'; readonly file: string }
  | ({ readonly type: 'syntax'; readonly text: string } & SourcePosition)

/** A place in a source file. Lines and columns start with 1. */
interface SourcePosition {
  readonly file: string
  readonly line: number
  readonly column: number
}
