import { useAdkTexts } from '../provider.tsx'
import { findLookAlikes, readPieces } from '../reading/literal-text.ts'

/**
 * Text that a person decides about, exactly as it is: its direction does not affect what is around it, and characters that are
 * invisible or change the order of others are shown by name.
 */
export function LiteralText({ text }: { readonly text: string }) {
  return (
    <bdi className="adk-literal">
      {readPieces(text).map((piece, index) =>
        piece.kind === 'text' ? (
          piece.text
        ) : (
          // The pieces of a text never change places.
          // oxlint-disable-next-line react/no-array-index-key
          <mark key={index} className="adk-hidden-character">
            {`⟨${piece.name}⟩`}
          </mark>
        ),
      )}
    </bdi>
  )
}

/** Warns of words in a value that look like others. */
export function LookAlikeWarning({ text }: { readonly text: string }) {
  const { approval } = useAdkTexts()
  const words = findLookAlikes(text)
  if (words.length === 0) return null
  return <p className="adk-look-alike">{approval.lookAlike(words.join(', '))}</p>
}
