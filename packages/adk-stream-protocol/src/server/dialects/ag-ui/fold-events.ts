import type { RunEvent, RunMessage } from './events.ts'

/**
 * The messages that a client has after the events of a run. AG1382: it applies an event as `@ag-ui/client` does, so that a snapshot equals
 * what the client has after the stream.
 */
export class FoldedMessages {
  readonly list: RunMessage[] = []

  add(message: RunMessage): void {
    this.list.push(message)
  }

  apply(event: RunEvent): void {
    switch (event.type) {
      case 'TEXT_MESSAGE_START': {
        const { messageId: id, role, name } = event
        this.list.push({ id, role, content: '', ...(name !== undefined && { name }) })
        return
      }
      case 'REASONING_MESSAGE_START':
        this.list.push({ id: event.messageId, role: 'reasoning', content: '' })
        return
      case 'TEXT_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_CONTENT': {
        const message = this.list.findLast(({ id }) => id === event.messageId)
        if (message?.role === 'assistant' || message?.role === 'reasoning')
          message.content = `${message.content ?? ''}${event.delta}`
        return
      }
      case 'TOOL_CALL_START':
        this.#addCall(event)
        return
      case 'TOOL_CALL_ARGS':
        this.#setArguments(event.toolCallId, event.delta)
        return
      case 'TOOL_CALL_RESULT':
        this.#addResult(event)
        return
      case 'ACTIVITY_SNAPSHOT':
        this.#setActivity(event)
        return
      case 'RUN_STARTED':
      case 'RUN_FINISHED':
      case 'RUN_ERROR':
      case 'TEXT_MESSAGE_END':
      case 'REASONING_START':
      case 'REASONING_MESSAGE_END':
      case 'REASONING_END':
      case 'TOOL_CALL_END':
      case 'STATE_SNAPSHOT':
      case 'STATE_DELTA':
      case 'MESSAGES_SNAPSHOT':
      case 'CUSTOM':
    }
  }

  #addCall(event: Extract<RunEvent, { type: 'TOOL_CALL_START' }>): void {
    const { toolCallId, toolCallName, parentMessageId } = event
    const call = {
      id: toolCallId,
      type: 'function',
      function: { name: toolCallName, arguments: '' },
    } as const
    const parent = this.list.findLast(({ id }) => id === parentMessageId)
    if (parent?.role === 'assistant') parent.toolCalls = [...(parent.toolCalls ?? []), call]
    else this.list.push({ id: parentMessageId, role: 'assistant', toolCalls: [call] })
  }

  #setArguments(toolCallId: string, text: string): void {
    const calls = this.#parentOf(toolCallId)?.toolCalls
    const index = calls?.findIndex(({ id }) => id === toolCallId) ?? -1
    const call = calls?.[index]
    if (calls && call) calls[index] = { ...call, function: { ...call.function, arguments: text } }
  }

  /** Adds a result after its call and the results that follow the call, or replaces the one before. */
  #addResult(event: Extract<RunEvent, { type: 'TOOL_CALL_RESULT' }>): void {
    const { messageId: id, role, toolCallId, content } = event
    const before = this.list.findIndex((message) => message.id === id)
    if (before >= 0) {
      this.list[before] = { id, role, toolCallId, content }
      return
    }
    const parent = this.#parentOf(toolCallId)
    let index = parent ? this.list.indexOf(parent) + 1 : this.list.length
    while (this.list[index]?.role === 'tool') index += 1
    this.list.splice(index, 0, { id, role, toolCallId, content })
  }

  #setActivity(event: Extract<RunEvent, { type: 'ACTIVITY_SNAPSHOT' }>): void {
    const { messageId, activityType, content } = event
    const index = this.list.findIndex(({ id }) => id === messageId)
    const message = { id: messageId, role: 'activity', activityType, content } as const
    this.list.splice(index < 0 ? this.list.length : index, index < 0 ? 0 : 1, message)
  }

  #parentOf(toolCallId: string) {
    return this.list.findLast(
      (message): message is Extract<RunMessage, { role: 'assistant' }> =>
        message.role === 'assistant' &&
        message.toolCalls?.some(({ id }) => id === toolCallId) === true,
    )
  }
}
