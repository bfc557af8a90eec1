import {
  BaseLlm,
  type BaseLlmConnection,
  FunctionTool,
  type LlmRequest,
  type LlmResponse,
} from '@google/adk'

/** A model that calls `pay`, and replies after the result. */
export class PayingModel extends BaseLlm {
  constructor() {
    super({ model: 'scripted' })
  }

  override async *generateContentAsync({
    contents,
  }: LlmRequest): AsyncGenerator<LlmResponse, void> {
    const hasResult = contents.at(-1)?.parts?.some((part) => part.functionResponse !== undefined)
    const part = hasResult ? { text: 'Done.' } : { functionCall: { name: 'pay', args: {} } }
    yield { content: { role: 'model', parts: [part] } }
  }

  override connect(): Promise<BaseLlmConnection> {
    throw new TypeError('The scripted model is not live.')
  }
}

/** Returns a tool that needs approval. Calls `onStart` when it runs. */
export function createPayTool(onStart: () => void): FunctionTool {
  return new FunctionTool({
    name: 'pay',
    description: 'Pays.',
    requireConfirmation: true,
    execute: () => {
      onStart()
      return { paid: true }
    },
  })
}
