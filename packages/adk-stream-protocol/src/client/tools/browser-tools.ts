import { AdkError } from '../adk-error.ts'
import type { AttachedChat } from '../sync/attached-chat.ts'
import type { MessageView, PartView } from '../sync/chat-messages.ts'
import { approvalState } from '../sync/chat-messages.ts'
import type { PageCall } from './run-call.ts'
import { PageRuns } from './run-call.ts'

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
    const isPending = (): Promise<boolean> => attached.catchUp().then(isOpen)
    const output = await PageRuns.of(attached.channel).run({ ...call, isPending })
    // The next chat with this id finds the output in `PageRuns`.
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

const STARTED = new WeakMap<AttachedChat, Set<string>>()

type Call = Omit<PageCall, 'isPending'>

/** Returns the calls of a chat that may run now. */
function runnableCalls(attached: AttachedChat, tools: BrowserTools): Call[] {
  return attached.chat.messages.flatMap((message) =>
    message.parts.flatMap((part) => {
      const { toolCallId } = part
      const name = part.type.startsWith('tool-') ? part.type.slice('tool-'.length) : ''
      const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
      if (!tool || toolCallId === undefined) return []
      if (!mayRun(part, message, { attached, tool })) return []
      // The server has validated the arguments against the tool's schema.
      const input = ('input' in part ? part.input : undefined) as never
      return [{ tool: name, toolCallId, run: () => callTool(tool, input) }]
    }),
  )
}

interface Candidate {
  readonly attached: AttachedChat
  readonly tool: BrowserToolFunction | GatedBrowserTool
}

function mayRun(part: PartView, message: MessageView, { attached, tool }: Candidate): boolean {
  const { state, approval, toolCallId = '' } = part
  const reported = approvalState(message.parts, toolCallId)
  // The server decides whether one approval is enough.
  if (state === 'approval-responded') return approval?.approved === true && reported === 'approved'
  if (state !== 'input-available') return false
  if (reported !== undefined) return reported === 'approved'
  // While the message is being written, an approval request may follow.
  return !isGated(tool) && (attached.isOffered(toolCallId) || !attached.isWriting(message.id))
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
