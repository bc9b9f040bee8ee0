package dev.loadline.maven;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.SAXException;

/** The budgets of a run, read from the JUnit XML that `loadline --junit` writes. */
final class Budgets {
    private static final String SUITE = "loadline.budget";

    /** The exceeded budgets, each with its interval. */
    final List<String> broken = new ArrayList<>();
    /** The budgets that more trials may decide, and those whose metric was not measured. */
    final List<String> undecided = new ArrayList<>();
    /** The number of budgets. */
    int count;

    static Budgets read(File file) throws IOException {
        Budgets budgets = new Budgets();
        try {
            DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
            factory.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
            factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
            NodeList cases = factory.newDocumentBuilder().parse(file).getElementsByTagName("testcase");
            for (int at = 0; at < cases.getLength(); at++) {
                Element budget = (Element) cases.item(at);
                if (SUITE.equals(budget.getAttribute("classname"))) {
                    budgets.take(budget);
                }
            }
            return budgets;
        } catch (ParserConfigurationException | SAXException cause) {
            throw new IOException(file + " is not JUnit XML: " + cause.getMessage(), cause);
        }
    }

    private void take(Element budget) {
        count++;
        take(budget, "failure", broken);
        take(budget, "skipped", undecided);
    }

    private static void take(Element budget, String verdict, List<String> into) {
        NodeList found = budget.getElementsByTagName(verdict);
        if (found.getLength() > 0) {
            into.add(budget.getAttribute("name") + ": " + ((Element) found.item(0)).getAttribute("message"));
        }
    }
}
