/** The parts of packages that the docs use and that are not installed here, as their own documentation describes them, and file types of bundlers. */

declare module '@/components/ai-elements/confirmation' {
  import type { ToolUIPart } from 'ai'
  import type { ComponentProps, FC, PropsWithChildren } from 'react'

  export const Confirmation: FC<
    PropsWithChildren<{
      readonly approval?: ToolUIPart['approval']
      readonly state: ToolUIPart['state']
    }>
  >
  export const ConfirmationRequest: FC<PropsWithChildren>
  export const ConfirmationAccepted: FC<PropsWithChildren>
  export const ConfirmationRejected: FC<PropsWithChildren>
  export const ConfirmationActions: FC<ComponentProps<'div'>>
  export const ConfirmationAction: FC<ComponentProps<'button'>>
}

declare module '@/components/ai-elements/tool' {
  import type { ToolUIPart } from 'ai'
  import type { ComponentProps, FC, PropsWithChildren } from 'react'

  export const Tool: FC<PropsWithChildren<{ readonly defaultOpen?: boolean }>>
  export const ToolHeader: FC<{
    readonly type: ToolUIPart['type']
    readonly state: ToolUIPart['state']
    readonly title?: string
  }>
  export const ToolContent: FC<PropsWithChildren>
  export const ToolInput: FC<ComponentProps<'div'> & { readonly input: ToolUIPart['input'] }>
  export const ToolOutput: FC<
    ComponentProps<'div'> & {
      readonly output: ToolUIPart['output']
      readonly errorText: ToolUIPart['errorText']
    }
  >
}

declare module '*.css' {}

declare module 'next' {
  import type { IncomingMessage, Server, ServerResponse } from 'node:http'

  export interface NextConfig {
    readonly serverExternalPackages?: readonly string[]
  }

  export default function next(options: { readonly dev?: boolean; readonly httpServer?: Server }): {
    prepare(): Promise<void>
    getRequestHandler(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
  }
}

declare module 'pino' {
  type Write = (fields: object, message?: string) => void
  export function pino(): { readonly info: Write; readonly warn: Write; readonly error: Write }
}
