import type { Arguments } from '../reading/call.ts'
import { useAdkTexts } from '../provider.tsx'
import { LiteralText, LookAlikeWarning } from './literal-text.tsx'

/** What a call was made with, and what ran. */
export interface ArgumentsTableProps {
  readonly args: Arguments
  /** What ran in place of them. */
  readonly edited?: Arguments | undefined
}

/** The arguments of a call, one per line; beside those that were changed, what they became. */
export function ArgumentsTable({ args, edited }: ArgumentsTableProps) {
  const texts = useAdkTexts()
  const names = [...new Set([...Object.keys(args), ...Object.keys(edited ?? {})])]
  const shown = names.filter((name) => show(args[name]) !== '' || show(edited?.[name]) !== '')
  if (shown.length === 0) return null
  return (
    <table className="adk-arguments">
      <caption className="adk-hidden">{texts.tool.arguments}</caption>
      <thead className={edited ? undefined : 'adk-hidden'}>
        <tr>
          <th scope="col">{texts.approval.argument}</th>
          <th scope="col">{edited ? texts.approval.asked : texts.approval.value}</th>
          {edited && <th scope="col">{texts.approval.ran}</th>}
        </tr>
      </thead>
      <tbody>
        {shown.map((name) => (
          <tr key={name} data-changed={edited && show(edited[name]) !== show(args[name])}>
            <th scope="row">{texts.tool.names[name] ?? <LiteralText text={name} />}</th>
            <Value value={args[name]} />
            {edited && <Value value={edited[name]} />}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Value({ value }: { readonly value: unknown }) {
  const text = show(value)
  return (
    <td>
      <LiteralText text={text} />
      <LookAlikeWarning text={text} />
    </td>
  )
}

function show(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
