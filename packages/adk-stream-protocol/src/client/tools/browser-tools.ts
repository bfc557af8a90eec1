import { AdkError } from '../adk-error.ts'
import { isRecord } from '../../protocol/guards.ts'
import type { DataParts } from '../../protocol/message.ts'
import { delayBefore, withDefaults } from '../../shared/backoff.ts'
import type { AttachedChat } from '../sync/attached-chat.ts'
import type { MessageView, PartView } from '../connection/chat-messages.ts'
import { approvalState } from '../connection/chat-messages.ts'
import type { ToolOutput } from '../sync/attachable-chat.ts'
import { waitForNextAttempt } from '../connection/connection-state.ts'

/**
 * A tool that runs in the page. It gets the arguments of the call and returns its result.
 *
 * @inline
 */
type BrowserToolFunction = (input: never) => unknown

/**
 * A browser tool that may require an approval.
 *
 * @inline
 */
interface GatedBrowserTool {
  readonly run: BrowserToolFunction
  /** Whether the tool runs only after an approval, even if the agent does not require one. Default false. */
  readonly afterApproval?: boolean
}

/** Browser tools by name. */
export type BrowserTools = Readonly<Record<string, BrowserToolFunction | GatedBrowserTool>>

/**
 * Runs the calls of a chat's browser tools, each once, and sends their results to the model. If a tool throws, the result is the error.
 * Returns a function that stops it.
 */
export function runBrowserTools(attached: AttachedChat, tools: BrowserTools): () => void {
  // Kept per chat: React runs an effect twice.
  const started = STARTED.get(attached) ?? new Set<string>()
  STARTED.set(attached, started)
  const runPending = (): void => {
    for (const call of runnableCalls(attached, tools)) {
      if (started.has(call.toolCallId)) continue
      started.add(call.toolCallId)
      void runAndSend(call)
    }
  }
  const runAndSend = async (call: Call): Promise<void> => {
    const { toolCallId } = call
    const isOpen = (): boolean =>
      !attached.isDetached &&
      runnableCalls(attached, tools).some((each) => each.toolCallId === toolCallId)
    // Another tab may have sent the output, and this chat may not have read it.
    const isPending = async (): Promise<boolean> => {
      await untilCaughtUp(attached, call.messageId)
      return isOpen()
    }
    const output = await runOnce(attached.channel, { ...call, isPending })
    // The next chat with this id finds the output in `PAGE_OUTPUTS`.
    if (attached.isDetached) return
    if (output) return attached.chat.addToolOutput(output)
    started.delete(toolCallId)
    runPending()
  }
  // The listener is called before the chat has read the chunk.
  const stop = attached.onProgress(() => setTimeout(runPending, 0))
  runPending()
  return stop
}

/** Resolves when the chat shows a message as it is stored, or reads the turn that continues it, or is detached. */
async function untilCaughtUp(attached: AttachedChat, messageId: string): Promise<void> {
  for (let attempt = 0; !attached.isDetached; attempt += 1) {
    // A live session may keep the turn open while the call waits.
    const isRead = attached.isWriting(messageId)
    const isStored = await attached.checkStored(messageId)
    if (isStored === true || (isRead && isStored === false)) return
    await waitForNextAttempt(delayBefore(attempt, withDefaults(undefined)), NOT_ABORTED)
  }
}

const NOT_ABORTED = new AbortController().signal

const STARTED = new WeakMap<AttachedChat, Set<string>>()

interface Call extends Omit<PageCall, 'isPending'> {
  readonly messageId: string
}

/** Returns the calls of a chat that may run now. */
function runnableCalls(attached: AttachedChat, tools: BrowserTools): Call[] {
  return attached.chat.messages.flatMap((message) =>
    message.parts.flatMap((part) => {
      const { toolCallId } = part
      const name = part.type.startsWith('tool-') ? part.type.slice('tool-'.length) : ''
      const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
      if (!tool || toolCallId === undefined) return []
      if (!mayRun(part, message, tool)) return []
      // The server has validated the arguments against the tool's schema.
      const input = ('input' in part ? part.input : undefined) as never
      return [{ tool: name, toolCallId, messageId: message.id, run: () => callTool(tool, input) }]
    }),
  )
}

/**
 * Whether the page may run a call: if the server has offered it, and it has no result. A call that is only visible may need an approval,
 * and its request may follow.
 */
export function mayRun(
  { state, toolCallId = '' }: PartView,
  { parts, metadata }: Pick<MessageView, 'parts' | 'metadata'>,
  tool: BrowserTools[string],
): boolean {
  if (state !== 'input-available' && state !== 'approval-responded') return false
  if (isRecord(metadata) && metadata['stopped'] === true) return false
  if (!isOffered(parts, toolCallId)) return false
  const approval = approvalState(parts, toolCallId)
  return approval === undefined ? !isGated(tool) : approval === 'approved'
}

/** Whether the server has offered a call to the client (`data-browser-call`). */
function isOffered(parts: readonly PartView[], toolCallId: string): boolean {
  return parts.some((part) => {
    if (part.type !== 'data-browser-call' || !('data' in part)) return false
    // Only the bridge creates parts of this type.
    return (part.data as DataParts['browser-call']).toolCallId === toolCallId
  })
}

/** Whether a tool runs only after an approval. */
export function isGated(tool: BrowserTools[string]): boolean {
  return typeof tool !== 'function' && tool.afterApproval === true
}

export function callTool(tool: BrowserTools[string] | undefined, input: never): unknown {
  // A later render may have removed the tool. The model must not take that for success.
  if (!tool) throw new AdkError('unavailable', 'The page no longer has this tool.')
  return typeof tool === 'function' ? tool(input) : tool.run(input)
}

/** A tool call that this page is to run. */
export interface PageCall {
  readonly tool: string
  readonly toolCallId: string
  readonly run: () => unknown
  /** Whether the call is still pending. Asked if another tab was running it. */
  readonly isPending: () => Promise<boolean>
}

/**
 * The outputs of calls that a page runs, by its document: a chat that is closed and opened again, also with another transport, finds the
 * calls that it started. Without a document, by transport.
 */
const PAGE_OUTPUTS = new WeakMap<object, Map<string, Promise<ToolOutput | undefined>>>()

/** Runs a call once per page. Resolves with its output, or with undefined if another tab ran it. */
function runOnce(transport: object, call: PageCall): Promise<ToolOutput | undefined> {
  const { document: page = transport } = globalThis as { document?: object }
  const outputs = PAGE_OUTPUTS.get(page) ?? new Map<string, Promise<ToolOutput | undefined>>()
  PAGE_OUTPUTS.set(page, outputs)
  const start = async (): Promise<ToolOutput | undefined> => {
    const { how, release } = await claimCall(call.toolCallId)
    if (how === 'first' || (await call.isPending())) return runCall(call)
    release()
    outputs.delete(call.toolCallId)
    return undefined
  }
  const output = outputs.get(call.toolCallId) ?? start()
  outputs.set(call.toolCallId, output)
  return output
}

/** Runs a call. If it throws, the output is the error. */
export async function runCall({
  tool,
  toolCallId,
  run,
}: Omit<PageCall, 'isPending'>): Promise<ToolOutput> {
  try {
    return { tool, toolCallId, output: (await run()) ?? null }
  } catch (error) {
    const errorText = error instanceof Error ? error.message : String(error)
    return { state: 'output-error', tool, toolCallId, errorText }
  }
}

/** `first`: no other tab had claimed the call. `inherited`: another tab had claimed it and is gone. */
type Claim = { readonly how: 'first' | 'inherited'; readonly release: () => void }

/**
 * Resolves when this tab may run a call. The claim lasts until the tab is closed or `release` is called, so that a second tab does not
 * run the call too, and takes over if this one is gone.
 */
async function claimCall(toolCallId: string): Promise<Claim> {
  const { navigator } = globalThis as { navigator?: { readonly locks?: LockManager } }
  // There are no locks on pages that are served over HTTP from another machine.
  const locks = navigator?.locks
  if (!locks) return NO_LOCKS
  const name = `adk-tool-call/${toolCallId}`
  try {
    const release = await acquire(locks, name, { ifAvailable: true })
    if (release) return { how: 'first', release }
    return { how: 'inherited', release: (await acquire(locks, name, {})) ?? NO_LOCKS.release }
  } catch {
    // The page may be forbidden to use locks.
    return NO_LOCKS
  }
}

const NO_LOCKS: Claim = { how: 'first', release: () => undefined }

/** Resolves with a function that releases the lock, or with undefined if the lock is not available. */
function acquire(
  locks: LockManager,
  name: string,
  options: LockOptions,
): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    locks
      .request(name, options, (lock) => {
        if (!lock) return resolve(undefined)
        return new Promise<void>((release) => resolve(release))
      })
      .catch(reject)
  })
}
