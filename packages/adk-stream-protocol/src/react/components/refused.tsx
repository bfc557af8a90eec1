import { useAdkTexts } from '../provider.tsx'
import type { ToldError } from '../reading/problem.ts'

/** Why a decision was not accepted. */
export function Refused({ refusal }: { readonly refusal: ToldError | undefined }) {
  const { approval } = useAdkTexts()
  if (!refusal) return null
  return (
    <p className="adk-failure" role="alert">
      {approval.refusals[refusal.code] ?? refusal.message}
    </p>
  )
}
