/** What the docs show of packages that are not installed here, in the words of their own documentation; and what a bundler knows. */

declare module '@assistant-ui/react' {
  import type { FC, PropsWithChildren } from 'react'

  export interface AssistantRuntime {
    readonly threads: unknown
  }
  export const AssistantRuntimeProvider: FC<PropsWithChildren<{ runtime: AssistantRuntime }>>
}

declare module '@assistant-ui/react-ai-sdk' {
  import type { UseChatHelpers } from '@ai-sdk/react'
  import type { AssistantRuntime } from '@assistant-ui/react'
  import type { UIMessage } from 'ai'

  export function useAISDKRuntime<Message extends UIMessage>(
    chat: UseChatHelpers<Message>,
    adapter?: { readonly cancelPendingToolCallsOnSend?: boolean },
  ): AssistantRuntime
}

declare module '*.css' {}

declare module 'next' {
  import type { IncomingMessage, Server, ServerResponse } from 'node:http'

  export default function next(options: { readonly dev?: boolean; readonly httpServer?: Server }): {
    prepare(): Promise<void>
    getRequestHandler(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
  }
}
