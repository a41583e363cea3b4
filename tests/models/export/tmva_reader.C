// Scores of rows by TMVA's reader, for ROOT 5 and ROOT 6:
//   root -b -l -q 'tmva_reader.C("weights.xml", "rows.txt", "scores.txt")'
// rows.txt has the number of features, their names, one on each line, and rows of numbers.
#if !defined(__CINT__)
#include <fstream>
#include "TMVA/Reader.h"
#include "TString.h"
#include "TSystem.h"
#endif

void tmva_reader(const char *weights, const char *rows, const char *scores)
{
   gSystem->Load("libTMVA");
   TMVA::Reader reader("!Color:Silent");
   std::ifstream in(rows);
   TString line;
   line.ReadLine(in);
   const int n = line.Atoi();
   Float_t *values = new Float_t[n];
   for (int i = 0; i < n; ++i) {
      line.ReadLine(in);
      reader.AddVariable(line, values + i);
   }
   reader.BookMVA("BDT", weights);
   std::ofstream out(scores);
   while (in >> values[0]) {
      for (int i = 1; i < n; ++i)
         in >> values[i];
      out << TString::Format("%.17g\n", reader.EvaluateMVA("BDT"));
   }
}
