import type { Event } from '@google/adk'

import { readTask } from '../agent/adk-workarounds/remote-agents.ts'
import { readNotes } from '../agent/history/event-notes.ts'

/** The ids of calls that stand for what a remote agent asks begin with this. */
export const REMOTE_CALL = 'remote-'

/** A task of a remote agent that waits. */
export interface WaitingTask {
  /** The name of the agent. */
  readonly agent: string
  readonly taskId: string
}

/** Returns the tasks of the remote agents that asked with these calls, at any depth. */
export function findWaitingTasks(
  events: readonly Event[],
  toolCallIds: ReadonlySet<string>,
): WaitingTask[] {
  const tasks = new Map<string, WaitingTask>()
  for (const event of events) {
    const inner = readNotes(event).nested?.event ?? event
    const asked = readNotes(inner).remote?.some(({ toolCallId }) => toolCallIds.has(toolCallId))
    const task = asked ? readTask(inner) : undefined
    if (task) tasks.set(task.taskId, { agent: inner.author ?? '', taskId: task.taskId })
  }
  return [...tasks.values()]
}
