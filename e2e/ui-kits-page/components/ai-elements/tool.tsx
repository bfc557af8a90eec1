/** Stand-ins of AI Elements' `Tool`, whose source is not on npm: the same names and properties, without a look. */
import type { ToolUIPart } from 'ai'
import type { PropsWithChildren } from 'react'

export function Tool({ children }: PropsWithChildren<{ readonly defaultOpen?: boolean }>) {
  return <section>{children}</section>
}

export function ToolHeader({ type, state }: Pick<ToolUIPart, 'type' | 'state'>) {
  return (
    <h2>
      {type} {state}
    </h2>
  )
}

export function ToolContent({ children }: PropsWithChildren) {
  return <div>{children}</div>
}

export function ToolInput({ input }: Pick<ToolUIPart, 'input'>) {
  return <pre>{JSON.stringify(input)}</pre>
}

export function ToolOutput({ output, errorText }: Pick<ToolUIPart, 'output' | 'errorText'>) {
  if (output === undefined && errorText === undefined) return null
  return <output>{errorText ?? JSON.stringify(output)}</output>
}
