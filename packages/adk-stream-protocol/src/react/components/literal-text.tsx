import { useAdkLabels } from '../provider.tsx'
import { findLookAlikes, readPieces } from '../reading/literal-text.ts'

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
