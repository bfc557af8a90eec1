import type { Arguments } from '../reading/call.ts'
import { useAdkLabels } from '../provider.tsx'
import { findLookAlikes, readPieces } from '../reading/literal-text.ts'

/** Props of `ArgumentsTable`. */
export interface ArgumentsTableProps {
  /** The arguments that the model requested. */
  readonly args: Arguments
  /** The edited arguments that ran instead. */
  readonly edited?: Arguments | undefined
  /** Whether the edited arguments were not sent. Default false. */
  readonly isUnsent?: boolean
  /** Display names of the arguments. Default: those of the labels. */
  readonly titles?: Readonly<Record<string, string>> | undefined
}

/** Returns the arguments that a text does not contain. They are shown next to it. */
export function findUnmentioned(args: Arguments, text: string): Arguments {
  return Object.fromEntries(
    Object.entries(args).filter(
      ([, value]) => !text.includes(show(value)) || findLookAlikes(show(value)).length > 0,
    ),
  )
}

/** Shows the arguments of a call, one per row. If they were edited, a second column shows what ran. */
export function ArgumentsTable({ args, edited, isUnsent = false, titles }: ArgumentsTableProps) {
  const labels = useAdkLabels()
  const named = titles ?? labels.tool.argumentNames
  const names = [...new Set([...Object.keys(args), ...Object.keys(edited ?? {})])]
  const shown = names.filter((name) => show(args[name]) !== '' || show(edited?.[name]) !== '')
  if (shown.length === 0) return null
  return (
    <table className="adk-arguments">
      <caption className="adk-hidden">{labels.tool.arguments}</caption>
      <thead className={edited ? undefined : 'adk-hidden'}>
        <tr>
          <th scope="col">{labels.approval.argument}</th>
          <th scope="col">{edited ? labels.approval.requestedValue : labels.approval.value}</th>
          {edited && (
            <th scope="col">
              {isUnsent ? labels.approval.typedValue : labels.approval.approvedValue}
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {shown.map((name) => (
          <tr key={name} data-changed={edited && show(edited[name]) !== show(args[name])}>
            <th scope="row">
              <LiteralText text={Object.hasOwn(named, name) ? (named[name] ?? name) : name} />
            </th>
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

/**
 * Shows text that a person decides about exactly as it is. Its direction does not affect the text around it. Characters that are
 * invisible or reorder others appear as their code point.
 */
export function LiteralText({ text }: { readonly text: string }) {
  return (
    <bdi className="adk-literal">
      {readPieces(text).map((piece, index) =>
        piece.kind === 'text' ? (
          piece.text
        ) : (
          // The pieces of a text keep their order.
          // oxlint-disable-next-line react/no-array-index-key
          <mark key={index} className="adk-hidden-character">
            {`⟨${piece.name}⟩`}
          </mark>
        ),
      )}
    </bdi>
  )
}

/** Warns of words with look-alike letters. */
export function LookAlikeWarning({ text }: { readonly text: string }) {
  const { approval } = useAdkLabels()
  const words = findLookAlikes(text)
  if (words.length === 0) return null
  return <p className="adk-look-alike">{approval.lookAlike(words.join(', '))}</p>
}
