import { AdkError } from '../adk-error.ts'
import type { AttachedChat } from '../sync/attached-chat.ts'
import type { PageCall } from './page-runs.ts'
import { PageRuns } from './page-runs.ts'
import type { MessageView, PartView } from '../sync/response-states.ts'
import { approvalState } from '../sync/message-edits.ts'

/** A tool that runs in the page: gets the arguments of the call, gives its result. */
export type BrowserToolFunction = (input: never) => unknown

/** A tool of the page that a person is asked about first. */
export interface GatedBrowserTool {
  readonly run: BrowserToolFunction
  /** Whether it never runs without an approval, whatever the agent declares. Default false. */
  readonly afterApproval?: boolean
}

/** Functions by tool name. */
export type BrowserTools = Readonly<Record<string, BrowserToolFunction | GatedBrowserTool>>

/**
 * Runs the calls of browser tools of a chat, each once, and gives their results to the model; what a tool throws is told as its
 * error. Give back ends it.
 */
export function runBrowserTools(attached: AttachedChat, tools: BrowserTools): () => void {
  // By chat, and not by this call: an effect that runs twice is one page with one chat.
  const begun = BEGUN.get(attached) ?? new Set<string>()
  BEGUN.set(attached, begun)
  const look = (): void => {
    for (const call of callsOf(attached, tools)) {
      if (begun.has(call.toolCallId)) continue
      begun.add(call.toolCallId)
      void give(call)
    }
  }
  const give = async (call: Call): Promise<void> => {
    const { toolCallId } = call
    const isOpen = (): boolean =>
      !attached.isLetGo && callsOf(attached, tools).some((each) => each.toolCallId === toolCallId)
    // Its output may have been given where this chat did not read.
    const isWanted = (): Promise<boolean> => attached.catchUp().then(isOpen)
    const output = await PageRuns.of(attached.channel).run({ ...call, isWanted })
    // The next chat of this id finds what became of it.
    if (attached.isLetGo) return
    if (output) return attached.chat.addToolOutput(output)
    begun.delete(toolCallId)
    look()
  }
  // A chunk is told before the chat has it.
  const stop = attached.onProgress(() => setTimeout(look, 0))
  look()
  return stop
}

const BEGUN = new WeakMap<AttachedChat, Set<string>>()

type Call = Omit<PageCall, 'isWanted'>

/** The calls of a chat that may run now. */
function callsOf(attached: AttachedChat, tools: BrowserTools): Call[] {
  return attached.chat.messages.flatMap((message) =>
    message.parts.flatMap((part) => {
      const { toolCallId } = part
      const name = part.type.startsWith('tool-') ? part.type.slice('tool-'.length) : ''
      const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
      if (!tool || toolCallId === undefined) return []
      if (!mayRun(part, message, { attached, tool })) return []
      // The arguments fit the tool's schema: the server has checked them.
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
  const asked = approvalState(message.parts, toolCallId)
  // Whether it is enough that this person said yes, the server knows.
  if (state === 'approval-responded') return approval?.approved === true && asked === 'approved'
  if (state !== 'input-available') return false
  if (asked !== undefined) return asked === 'approved'
  // While its message is being written, a question may still come.
  return !isGated(tool) && (attached.isOffered(toolCallId) || !attached.isWriting(message.id))
}

/** Whether a tool never runs where nobody was asked. */
export function isGated(tool: BrowserTools[string]): boolean {
  return typeof tool !== 'function' && tool.afterApproval === true
}

export function callTool(tool: BrowserTools[string] | undefined, input: never): unknown {
  // A later rendering may have taken it away. The model must not read that as done.
  if (!tool) throw new AdkError('unavailable', 'The page cannot do this any more.')
  return typeof tool === 'function' ? tool(input) : tool.run(input)
}
