import type { Chunk } from '../protocol/chunk.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import type { TurnLog } from '../turns/turn-log.ts'

/**
 * Makes the running turns of one server readable on all servers. A store that several machines use has one. Every method may be
 * called at any time. Only the start and the end of a turn wait for the disk, so a crash of the database may lose other updates.
 */
export interface Relay extends Signals {
  /**
   * Writes what the turns of one server have produced since the last call, in one transaction. Repeating a call that failed has no
   * further effect. Returns the turns that the server still owns, each with the number of its last stored update; the other ones
   * have been ended by another server. If the number is smaller than those of the given updates, a crash of the database has lost
   * earlier ones. Nothing of the turn is stored then, and the updates after the number have to be written again.
   */
  write(updates: readonly TurnUpdate[], options: WriteOptions): Promise<ReadonlyMap<string, number>>
  /** Returns the newest turn of a chat if it has not ended. While a server holds the chat, turns from before that do not count. */
  find(chat: AppChatRef): Promise<RelayTurn | undefined>
  /** Reads turns from their positions. A turn that does not exist is missing in the result. */
  read(positions: readonly LastUpdate[]): Promise<TurnRows[]>
  /** Lists turns that have started or ended in the last `ms`, oldest first. */
  changes(ms: number): Promise<TurnChange[]>

  /** Records that a server reads turns of other servers, or renews that record. */
  watch(worker: string, turns: readonly Pick<RelayTurn, 'turnId' | 'owner'>[]): Promise<void>
  unwatch(worker: string, turns: readonly Pick<RelayTurn, 'turnId' | 'owner'>[]): Promise<void>
  /** Returns the running turns of a server that other servers read. */
  watched(owner: string, leaseMs: number): Promise<ReadonlySet<string>>

  /** Lists running turns whose servers have not called `take` for `leaseMs`. */
  abandoned(filter: { readonly appName: string; readonly leaseMs: number }): Promise<RelayTurn[]>
  /** Ends an abandoned turn with these lines. Does nothing if the turn has ended. */
  end(turnId: string, lines: readonly string[]): Promise<void>
  /** Removes turns that ended more than `keepMs` ago, and signals that no server has taken in this time. */
  removeEnded(keepMs: number): Promise<void>

  /** Removes the turns of a chat with everything that was said in them, running or not. */
  removeChat(chat: AppChatRef): Promise<void>

  /** Sends a hint to all servers. */
  notify(hint: Hint): Promise<void>
  /** Passes hints to the listener. Returns a function that unsubscribes. */
  listen(listener: HintListener): Promise<() => Promise<void>>
}

/** Messages between servers. */
export interface Signals {
  /** Sends a signal to a server. */
  send(target: string, signal: Signal): Promise<void>
  /** Takes the signals to a server, each of them once. In a relay, this also renews the lease of the server. */
  take(worker: string): Promise<Signal[]>
}

/** A turn as other servers see it. */
export interface RelayTurn {
  readonly turnId: string
  readonly chat: AppChatRef
  readonly messageId: string
  /** The server that runs the turn. */
  readonly owner: string
  /** Whether the rows contain the turn from its first chunk. */
  readonly replayable: boolean
}

/** What a turn has produced since its last update. */
export interface TurnUpdate extends Omit<RelayTurn, 'owner'> {
  /** The number of the update, from 1. */
  readonly seq: number
  /** Chunks and marks as JSON. The store keeps each line as it is. */
  readonly lines: readonly string[]
  readonly ended: boolean
}

/**
 * Options of {@link Relay.write}.
 *
 * @inline
 */
interface WriteOptions {
  readonly owner: string
  /** Turns that other servers read. Those servers get a hint. */
  readonly watched: readonly string[]
}

/**
 * How far a server has read a turn.
 *
 * @inline
 */
interface LastUpdate {
  readonly turnId: string
  /** The number of the last update that was read. */
  readonly seq: number
}

/** The updates of a turn after the position of a reader. */
export interface TurnRows extends LastUpdate {
  readonly lines: readonly string[]
  readonly ended: boolean
  readonly replayable: boolean
}

/** A turn that has started, or that has ended. */
export interface TurnChange extends RelayTurn {
  readonly ended: boolean
}

/** A message from one server to another. */
export interface Signal {
  readonly id: string
  /** The server that sent it. */
  readonly from: string
  readonly kind: string
  readonly body: unknown
}

/** Says that something has changed. A hint may be lost or come twice. */
export interface Hint {
  /** Turns with new rows. */
  readonly turns?: readonly string[]
  /** Servers whose turns have new readers, or have lost one. */
  readonly watched?: readonly string[]
  /** Servers that have signals to take. */
  readonly signals?: readonly string[]
  /** Turns have started or ended. */
  readonly changes?: boolean
  /** Approvals have changed. */
  readonly approvals?: boolean
}

/** Receives hints, and learns when hints may have been lost. */
export interface HintListener {
  readonly onHint: (hint: Hint) => void
  /** Hints may have been lost: read everything. */
  readonly onGap: () => void
  /** Whether hints arrive. If not, poll more often. */
  readonly onState: (state: 'listening' | 'polling') => void
  /** Reports, once, why no hints arrive. */
  readonly onWarning: (warning: Error) => void
}

/**
 * A line of a turn is the JSON of a chunk, or of a mark: the position that a client has read up to when it responds to the pause, to
 * an approval or to a call.
 */
type TurnLine = Chunk | { readonly mark: string | null }

export function markLine(id: string | undefined): string {
  return JSON.stringify({ mark: id ?? null })
}

/** Parses a line. Only this library writes lines, so their shape is not checked. */
export function readLine(line: string): TurnLine {
  return JSON.parse(line) as TurnLine
}

/** Appends lines to the log of a turn. */
export function appendLines(log: TurnLog, lines: readonly string[]): void {
  for (const line of lines) {
    const read = readLine(line)
    if ('mark' in read) log.markPause(read.mark ?? undefined)
    else log.append(read)
  }
}
